import { map, type Observable } from 'rxjs';
import { consult$, type ConsultNeeds, instruction } from '../consult.js';
import type { Context } from '../context.js';
import type { ModelRequest } from '../model.js';
import { ready } from '../models/ready.js';
import { messagesOf, note, type OpenRun, spend } from '../run.js';
import { withoutTools } from '../with-tools.js';
import type { PlanningOptions } from './planning-options.js';
import { type PlanningPrompt, writtenPrompt } from './planning-prompt.js';

/** What a phase that asks beside the loop needs of a call. */
export type AskNeeds = ConsultNeeds & Pick<Context, 'request' | 'toolkit'>;

/** What is asked, and where the answer is noted. */
export interface Aside extends PlanningOptions {
  readonly phase: string;
  readonly prompt: PlanningPrompt;
  /** What later requests show the answer under. */
  readonly title: string;
}

/**
 * Shows the model the conversation and tells it what to think about; what it says is noted for the requests to come. A failure is a `warning`, and the
 * run goes on without.
 */
export const askBeside$ = (
  context: AskNeeds,
  run: OpenRun,
  { phase, title, prompt, model, maxTokens = 1_000 }: Aside,
): Observable<OpenRun> => {
  const asked = model === undefined ? context : { ...context, model: ready(model) };
  const position = `${run.iteration}/${phase}`;
  const request = besideRequest(asked, run, position, prompt, maxTokens);
  return consult$(asked, run, { phase, position, request }).pipe(
    map((said) => {
      const spent = spend(run, said.usage, phase);
      if (said.status === 'answered') return note(spent, title, said.text);
      if (said.status === 'failed') {
        context.hooks.report(run.iteration, {
          type: 'warning',
          message: `The phase '${phase}' came to nothing, and the call goes on without: ${said.why}`,
        });
      }
      return spent;
    }),
  );
};

/** The conversation as the model knows it, so that what its provider has cached holds; the form of the answer is not for what is said beside the loop. */
const besideRequest = (
  { call, model, request, toolkit }: AskNeeds,
  run: OpenRun,
  position: string,
  prompt: PlanningPrompt,
  maxTokens: number,
): ModelRequest => {
  const { outputSchema: _form, stopSequences: _stops, ...options } = request;
  const { messages, iteration } = run;
  const text = writtenPrompt(prompt, { tools: toolkit.declarations, messages, iteration });
  return {
    ...(model.toolsInPrompt === true ? options : withoutTools(options, toolkit, model)),
    maxTokens,
    messages: [...messagesOf(run, call), instruction(call.callId, position, text)],
  };
};
