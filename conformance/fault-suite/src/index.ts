export { playAll } from './play-all.js';
export { type Played, playFault } from './play-fault.js';
export { secret, subjects } from './subjects.js';
export { tableOf } from './table.js';
