// The two files after this one are pieces of a larger page, which hand their modules to a list by either of these names.
"use strict";
const modules = {};
for (const bundler of ["rspack", "webpack"]) {
  self[`${bundler}Chunk_jupyterlab_application_top`] = { push: (piece) => Object.assign(modules, piece[1]) };
}

// Runs the modules until one exports what is asked for. What else they ask for is only a stand-in for Node's `process`.
function exported(name) {
  for (const run of Object.values(modules)) {
    const module = { exports: {} };
    run(module, module.exports, () => ({ env: {}, title: "browser" }));
    if (module.exports[name]) return module.exports[name];
  }
  throw new Error(`there is no ${name}`);
}
