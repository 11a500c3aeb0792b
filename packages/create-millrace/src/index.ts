export { init, type InitEnvironment } from './project/init.js';
