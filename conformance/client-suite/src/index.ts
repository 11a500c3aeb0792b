export { columns } from './columns.js';
