export {
  play,
  type Played,
  type Revision,
  revisions,
  type Scenario,
  scenariosOf,
} from './scenarios.js';
export { type Side, unsupported } from './unsupported.js';
