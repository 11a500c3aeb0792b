export { a2a, type A2aOptions, type A2aSkill } from './a2a.js';
