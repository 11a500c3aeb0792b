import { callsScenario } from './calls-scenario.js';

const loop = {
  about: '8 turns with one tool each, then an answer of 200 deltas',
  script: '8x1-200',
  smallScript: '2x1-20',
};

/** (a): a loop of eight turns. */
export const tools = callsScenario({ letter: 'a', ...loop });

/** (m): the same in the harsher form. */
export const toolsWhole = callsScenario({
  letter: 'm',
  about: `in one write: ${loop.about}`,
  script: `${loop.script}w`,
  smallScript: `${loop.smallScript}w`,
});

/** (l): the same over TLS, as providers are reached. */
export const toolsOverTls = callsScenario({
  ...loop,
  letter: 'l',
  about: `over TLS: ${loop.about}`,
  isTls: true,
});
