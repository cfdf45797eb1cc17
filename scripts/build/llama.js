/**
 * The one version of llama.cpp that tapline is built with, and how it travels: node-llama-cpp carries the whole
 * source tree in its npm package as a git bundle, so a machine that can install from npm can build.
 */
export const llamaCpp = {
  version: "0.5.0",
  package: "node-llama-cpp@3.22.1",
  /** Of the package's tarball, as `npm view node-llama-cpp@3.22.1 dist.integrity` prints it. */
  integrity:
    "sha512-bltIipuWmc123H7tMIgDGKSsSrhmhlQYeVUC48XTjVW7XGJJiJJyCdlTMzQ/LiWoPkGDpcL4FviDpgw7qfTiDw==",
  /** Path of the bundle inside the tarball. */
  bundle: "package/llama/gitRelease.bundle",
};

/** A file that only a whole llama.cpp tree with llama-server's engine has. */
export const landmark = "tools/server/server-context.h";
