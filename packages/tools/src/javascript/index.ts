// Runs JavaScript of a model in a sandbox.
export { runJavaScript, type RunJavaScriptOptions } from './run-javascript.js';
export { memoryRule, notInstalled, type Outcome, outputOf, sandbox$, tooSlow$ } from './sandbox.js';
export type { SandboxCall, SandboxMessage, SandboxResults, SandboxTask } from './sandbox.worker.js';
export type { Clock, Surroundings } from './install-tools.js';
