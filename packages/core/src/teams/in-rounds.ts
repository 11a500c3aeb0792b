import { map } from 'rxjs';
import type { Agent } from '../agent.js';
import type { Reply } from '../reply.js';
import { type Decide, decided$ } from './take-turns.js';

/** Takes agents in the order of their list, round after round; between two rounds it may be decided that it is enough. */
export const inRounds =
  <Said extends Reply>(
    agents: readonly Agent[],
    until?: Decide<boolean, Said>,
  ): Decide<Agent | undefined, Said> =>
  (transcript, input, options) => {
    const place = transcript.length % agents.length;
    const agent = agents[place];
    if (until === undefined || place > 0 || transcript.length === 0) return agent;
    return decided$(until(transcript, input, options), isBoolean).pipe(
      map((isEnough) => (isEnough === true ? undefined : agent)),
    );
  };

const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean';
