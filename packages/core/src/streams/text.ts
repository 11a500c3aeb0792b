import { filter, map, type OperatorFunction, pipe } from 'rxjs';
import type { AgentEvent } from '../events.js';
import { type CallsHeard, spoken } from './heard.js';
import { isAnswerDelta } from './merge-deltas.js';

/**
 * Emits the deltas of the answer's text as they come, of the closing request too: no thinking and no arguments of
 * tools. What a call below says for the root (`speaks`) is a part of the answer. Strings do not say whose they are: of several calls at once, group them with `byCall()` before. Nor can they
 * be unsaid: a message that is discarded leaves its text here, so a user interface also listens to
 * `messageDiscarded`. Ends as the events do.
 */
export const text = (options?: CallsHeard): OperatorFunction<AgentEvent, string> =>
  pipe(
    spoken('text()', options),
    filter(isAnswerDelta),
    filter(({ kind }) => kind === 'text'),
    map(({ delta }) => delta),
  );
