export { otel, type OtelOptions } from './otel.js';
