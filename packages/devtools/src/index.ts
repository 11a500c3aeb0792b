export { createDevtools, type Devtools, devtools, type DevtoolsOptions } from './devtools.js';
export { type StoreDevtoolsOptions, storeDevtools } from './store-devtools.js';
