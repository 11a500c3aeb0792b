// Runs JavaScript of a model in a sandbox.
export { runJavaScript, type RunJavaScriptOptions } from './run-javascript.js';
