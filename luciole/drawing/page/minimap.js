// The whole graph in a corner, with a frame around what is in sight; a click goes there.

import { h } from "./dom.js";

const LARGEST_SIDE = [150, 200];

export class Minimap {
  constructor(view) {
    this.view = view;
    this.canvas = h("canvas", { class: "minimap", "aria-hidden": "true" });
    this.frame = h("div", { class: "minimap-frame" });
    this.element = h("div", { class: "minimap-box" }, this.canvas, this.frame);
    this.element.addEventListener("pointerdown", (e) => this.press(e));
    view.element.append(this.element);
  }

  update() {
    const { scene, width, height, camera } = this.view;
    const whole =
      camera.x >= 0 &&
      camera.y >= 0 &&
      camera.x + camera.k * scene.width <= width &&
      camera.y + camera.k * scene.height <= height;
    this.element.hidden = whole;
    if (whole) return;
    if (this.scene !== scene || this.colours !== this.view.app.colours) this.paint(scene);
    const clip = (v, most) => Math.min(Math.max(v, 0), most);
    const [x0, x1] = [-camera.x, width - camera.x].map((v) =>
      clip((v / camera.k) * this.sx, this.canvas.clientWidth),
    );
    const [y0, y1] = [-camera.y, height - camera.y].map((v) =>
      clip((v / camera.k) * this.sy, this.canvas.clientHeight),
    );
    Object.assign(this.frame.style, {
      left: `${x0}px`,
      top: `${y0}px`,
      width: `${Math.max(x1 - x0, 4)}px`,
      height: `${Math.max(y1 - y0, 4)}px`,
    });
  }

  paint(scene) {
    this.scene = scene;
    this.colours = this.view.app.colours;
    const fit = Math.min(LARGEST_SIDE[0] / scene.width, LARGEST_SIDE[1] / scene.height);
    // a long thin graph is drawn wider than it is, so that there is something to see and to click
    this.sx = Math.max(fit, Math.min(0.12, 40 / scene.width));
    this.sy = Math.max(fit, Math.min(0.12, 40 / scene.height));
    const [width, height] = [
      Math.ceil(scene.width * this.sx) + 1,
      Math.ceil(scene.height * this.sy) + 1,
    ];
    const dense = window.devicePixelRatio || 1;
    Object.assign(this.canvas, { width: width * dense, height: height * dense });
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    const context = this.canvas.getContext("2d");
    context.scale(dense, dense);
    const plain = getComputedStyle(this.element).color;
    Object.assign(context, { strokeStyle: plain, lineWidth: 0.5 });
    for (const item of scene.items) {
      if (item.type === "frame") continue;
      const fill =
        item.type === "node"
          ? this.colours.of(this.view.graph.nodes[item.reference]).fill
          : "var(--group)";
      context.fillStyle = fill.startsWith("var") ? plain : fill;
      const box = [
        item.x * this.sx,
        item.y * this.sy,
        Math.max(item.width * this.sx, 1),
        Math.max(item.height * this.sy, 0.7),
      ];
      context.fillRect(...box);
      context.strokeRect(...box); // boxes of floats are nearly as dark as a dark page
    }
  }

  press(event) {
    event.preventDefault();
    const go = (e) => {
      const box = this.canvas.getBoundingClientRect();
      const { width, height, camera } = this.view;
      const [x, y] = [(e.clientX - box.left) / this.sx, (e.clientY - box.top) / this.sy];
      this.view.move({ ...camera, x: width / 2 - camera.k * x, y: height / 2 - camera.k * y });
    };
    go(event);
    this.element.setPointerCapture(event.pointerId);
    this.element.addEventListener("pointermove", go);
    this.element.addEventListener(
      "pointerup",
      () => this.element.removeEventListener("pointermove", go),
      { once: true },
    );
  }
}
