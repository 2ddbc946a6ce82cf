// The page before there is a model: it takes the first one.

import { button, h, replaceContent } from "./dom.js";
import { Opening } from "./opening.js";

export class Start {
  // `begin(doc)` shows a document in the place of this.
  constructor(doc, begin) {
    this.doc = doc;
    this.begin = begin;
    this.opening = new Opening(this);
    document.body.classList.add("empty");
    document.title = doc.title;
    replaceContent(document.getElementById("bar"), h("h1", {}, "luciole"));
    replaceContent(document.getElementById("panes"), this.invitation());
    performance.mark("drawn");
  }

  invitation() {
    const page = ["pages that ", h("code", {}, "circle-view -o"), " wrote."];
    const words = this.doc.served
      ? ["It takes .circle, .tflite and .onnx files, recipes, and ", page]
      : ["This page is a file: it takes ", page, " To open models, run ", h("code", {}, "circle-view"), "."];
    return h(
      "section",
      { class: "start" },
      h("b", {}, "Drop a file here"),
      h("p", {}, words),
      button("Open a file …", "Ctrl+O", () => this.opening.ask(false)),
    );
  }

  restart(doc) {
    this.opening.remove();
    document.body.classList.remove("empty");
    this.begin(doc);
  }

  // Acts on a key; whether it meant something.
  key(event) {
    const opens = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "o";
    if (opens) this.opening.ask(false);
    else if (event.key === "Escape") this.opening.hide();
    return opens;
  }

  follow() {}
}
