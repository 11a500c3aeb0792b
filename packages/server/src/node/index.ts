export { serve, type Served, type ServeOptions, toNodeListener } from './serve.js';
