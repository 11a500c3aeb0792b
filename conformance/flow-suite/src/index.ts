export { type Stops, measureStops, type StopsOptions } from './abort/measure-stops.js';
export { type Leaks, type LeaksOptions, measureLeaks } from './leaks/measure-leaks.js';
export { measureSlow, type Slow, type SlowOptions } from './slow/measure-slow.js';
export { type AnswerServer, startAnswerServer } from './server/start-answer-server.js';
