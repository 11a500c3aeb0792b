export { demoModelDescription } from './answer.js';
export { demoModel, type DemoModelOptions } from './demo-model.js';
