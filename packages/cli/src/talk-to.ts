import { type Agent, type Callable, MillraceError } from '@millrace/core';
import { type Session, sessions } from '@millrace/core/sessions';
import type { Begin } from './ask.js';
import type { AnswerArguments } from './command-line/arguments.js';
import type { Prepared } from './prepare.js';
import type { RunStore } from './runs/open-run-store.js';
import { modelMetadata } from './runs/run-model.js';

/** Whom a question goes to: a conversation that has a name, or the agent itself, which remembers nothing. */
export const talkTo = ({ agent, runs }: Prepared, session: string): Callable => {
  if (session === '') return agent;
  if (runs !== undefined) return inSession(agent, runs, session);
  throw new MillraceError(
    'config',
    `The conversation '${session}' cannot go on where nothing is written down. Leave --session out, or give it a --store that can be written to.`,
  );
};

/** The conversation of this name, among those that are kept. */
export const inSession = (agent: Agent, { memory }: RunStore, session: string): Session =>
  sessions(agent, { memory }).open(session);

/** Makes a question a call that has this id. */
export const beginWith =
  (
    callable: Callable,
    question: string,
    callId: string,
    { maxIterations }: Pick<AnswerArguments, 'maxIterations'>,
    { chosen }: Prepared,
  ): Begin =>
  (options) =>
    callable.stream$(question, {
      ...options,
      ...(maxIterations === undefined ? {} : { limits: { maxIterations } }),
      callId,
      metadata: modelMetadata(chosen),
    });
