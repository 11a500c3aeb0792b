// A program that imports the main entry alone: what features declare is not there, and a `switch` has a `default` for it.
import type { AgentEvent, CallInfo, EventOf, Reply } from 'millrace';

export const textIn = (event: AgentEvent): string => {
  switch (event.type) {
    case 'reasoningChunk':
      return event.delta;
    case 'warning':
      return event.message;
    default:
      return '';
  }
};

// @ts-expect-error it is declared by 'millrace/retrieval'
export type Retrieved = EventOf<'retrieved'>;
// @ts-expect-error it is declared by 'millrace/long-term-memory'
export type Recalled = EventOf<'recalled'>;
// @ts-expect-error it is declared by 'millrace/retrieval'
export type Sources = Reply['sources'];
// @ts-expect-error it is declared by 'millrace/sessions'
export type SessionId = CallInfo['sessionId'];
// @ts-expect-error it is declared by 'millrace/sessions'
export type Steered = EventOf<'steered'>;
// @ts-expect-error it is declared by 'millrace/journal'
export type StepReplayed = EventOf<'stepReplayed'>;
