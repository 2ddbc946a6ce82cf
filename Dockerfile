# luciole for a user without rights. In a checkout, and then in the folder of your models:
#   docker build -t luciole .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" luciole verify model.tflite
# More than the core: docker build -t luciole --build-arg EXTRAS="[onnx,tensorflow]" .
FROM python:3.13-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim
ARG EXTRAS=""
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-compile "$(echo /wheels/luciole-*.whl)${EXTRAS}" \
    && useradd --create-home --uid 1000 luciole
# A user without a home keeps compiled kernels here.
ENV LUCIOLE_CACHE=/tmp/luciole
USER 1000
WORKDIR /work
ENTRYPOINT ["luciole"]
CMD ["--help"]
