const { TestEnvironment } = require('jest-environment-node');

const keys = [1, 2].map((version) => Symbol.for(`undici.globalDispatcher.${version}`));

/** Gives the tests the dispatcher of Node's `fetch`: Jest copies the names of globals, but not their symbols. */
module.exports = class extends TestEnvironment {
  constructor(...args) {
    super(...args);
    // Node registers it when its `fetch` is first used.
    void globalThis.Response;
    for (const key of keys) {
      if (globalThis[key] !== undefined) this.global[key] = globalThis[key];
    }
  }
};
