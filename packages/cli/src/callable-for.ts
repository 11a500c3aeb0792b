import { type Agent, MillraceError } from 'millrace';
import { type Session, sessions } from 'millrace/sessions';
import type { Begin } from './ask.js';
import type { AnswerArguments } from './command-line/arguments.js';
import type { Prepared } from './prepare.js';
import type { RunStore } from './runs/open-run-store.js';
import { modelMetadata } from './runs/run-model.js';

/** The named conversation, or without a name the agent itself, which has no memory. */
export const callableFor = ({ agent, runs }: Prepared, session: string): Pick<Agent, 'stream$'> => {
  if (session === '') return agent;
  if (runs !== undefined) return inSession(agent, runs, session);
  throw new MillraceError(
    'config',
    `The conversation '${session}' cannot be stored. Omit --session, or choose a writable --store.`,
  );
};

export const inSession = (agent: Agent, { memory }: RunStore, session: string): Session =>
  sessions(agent, { memory }).open(session);

/** Starts a call with this id. */
export const startCall =
  (
    callable: Pick<Agent, 'stream$'>,
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
