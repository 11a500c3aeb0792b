export { linearPatterns } from './linear-patterns.js';
