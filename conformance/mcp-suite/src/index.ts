export { type Played, playClient, playServer, scenariosOf } from './scenarios.js';
export { type Side, unsupported } from './unsupported.js';
