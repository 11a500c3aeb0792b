export { a2aTool, type A2aTool, type A2aToolOptions } from './a2a-tool.js';
export type { A2aLimits } from './remote.js';
