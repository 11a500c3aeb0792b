// Keys in errors and prompts that a person reads.
export { withoutKeys } from '../page/secrets.js';
