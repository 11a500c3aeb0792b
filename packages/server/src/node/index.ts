export {
  type HandledRequest,
  type HandledResponse,
  type NodeListener,
  type RequestServer,
  toNodeListener,
} from './listener.js';
export { serve, type Served, type ServeOptions } from './serve.js';
