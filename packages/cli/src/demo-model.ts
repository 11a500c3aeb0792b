export { demoModel, demoModelDescription, type DemoModelOptions } from '@millrace/demo-model';
