import { abort } from './abort.js';
import { atOnce } from './at-once.js';
import { growth } from './growth.js';
import { idleSessions } from './idle-sessions.js';
import { journal } from './journal.js';
import { longStream, longStreamWhole } from './long-stream.js';
import { parallelTools, parallelToolsWhole } from './parallel-tools.js';
import type { Scenario } from './scenario.js';
import { slowConsumer } from './slow-consumer.js';
import { toolCost } from './tool-cost.js';
import { tools, toolsOverTls, toolsWhole } from './tools.js';
import { weight } from './weight.js';

/** All that can be measured, in the order in which it is. */
export const scenarios: readonly Scenario[] = [
  tools,
  parallelTools,
  longStream,
  growth,
  atOnce,
  slowConsumer,
  weight,
  abort,
  idleSessions,
  toolCost,
  journal,
  toolsOverTls,
  toolsWhole,
  parallelToolsWhole,
  longStreamWhole,
];
