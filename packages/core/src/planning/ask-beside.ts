import { map, type Observable } from 'rxjs';
import { consult$, type ConsultNeeds, instruction } from '../consult.js';
import type { Context } from '../context.js';
import { endInterrupted } from '../end-interrupted.js';
import type { ModelRequest } from '../model.js';
import { ready } from '../models/ready.js';
import { messagesOf, note, type OpenRun, type Run, spend } from '../run.js';
import { withoutTools } from '../request-options.js';
import type { PlanningOptions } from './planning-options.js';
import { type PlanningPrompt, writtenPrompt } from './planning-prompt.js';

export type AskNeeds = ConsultNeeds & Pick<Context, 'interruption' | 'request' | 'toolkit'>;

export interface Aside extends PlanningOptions {
  readonly name: string;
  readonly prompt: PlanningPrompt;
  /** What later requests show the answer under. */
  readonly title: string;
}

/** Shows the model the conversation and tells it what to think about; what it says is noted for the requests to come. A failure is a `warning`, and the run goes on without. */
export const askBeside$ = (
  context: AskNeeds,
  run: OpenRun,
  { name, title, prompt, model, maxTokens = 1_000 }: Aside,
): Observable<Run> => {
  const asked = model === undefined ? context : { ...context, model: ready(model) };
  const position = `${run.iteration}/${name}`;
  const request = besideRequest(asked, run, position, prompt, maxTokens);
  const warning = (why: string): string =>
    `The phase '${name}' came to nothing, and the call goes on without: ${why}`;
  return consult$(asked, run, { phase: name, position, request, warning }).pipe(
    map((said) => {
      const spent = spend(run, said.usage, name);
      if (said.status === 'answered') return note(spent, title, said.text);
      // Also where an interceptor would not have it: the call goes on, unless it is interrupted.
      return context.interruption.current === undefined ? spent : endInterrupted(spent, context);
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
