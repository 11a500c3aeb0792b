export { demoModel, type DemoModelOptions } from './demo-model.js';
export { demoModelDescription } from './introduce.js';
