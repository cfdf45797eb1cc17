# tapline compiled for CUDA. Not built by us. In a clone, after `npm pack`; the architecture is that of the card (90: H100):
#   docker build -f packaging/cuda.Dockerfile --build-arg ARCHITECTURE=90 -t tapline-cuda .
#   docker run --rm --gpus all --network host -v tapline:/data tapline-cuda serve demo
FROM nvidia/cuda:12.8.1-devel-ubuntu24.04 AS build
RUN apt-get update && apt-get install -y --no-install-recommends cmake g++ git ninja-build python3 xz-utils
COPY --from=node:22-bookworm-slim /usr/local/bin/node /usr/local/bin/node
COPY --from=node:22-bookworm-slim /usr/local/lib/node_modules/npm /usr/local/lib/node_modules/npm
ARG ARCHITECTURE=90
COPY tapline-0.3.0.tgz /tmp/
# The architecture has to be named: a build has no card to ask.
RUN TAPLINE_BACKEND=cuda TAPLINE_CMAKE_OPTIONS=CMAKE_CUDA_ARCHITECTURES=$ARCHITECTURE \
    node /usr/local/lib/node_modules/npm/bin/npm-cli.js install --global --prefix /opt/tapline /tmp/tapline-0.3.0.tgz

FROM nvidia/cuda:12.8.1-runtime-ubuntu24.04
RUN useradd --create-home tapline && install -d -o tapline /data
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build /opt/tapline /opt/tapline
ENV PATH=/opt/tapline/bin:$PATH TAPLINE_HOME=/data/tapline HF_HOME=/data/hub
USER tapline
VOLUME /data
ENTRYPOINT ["tapline"]
CMD ["doctor"]
