import type { InputRequest } from '@modelcontextprotocol/server';
import type { Observable } from 'rxjs';

/** The questions that a client can be asked. */
export type Feature = 'forms' | 'pages' | 'sampling' | 'samplingTools' | 'roots';

/** A question to the client, and how to read the answer: undefined if it has the wrong shape. */
export interface Question<Answer> {
  readonly id: string | undefined;
  readonly feature: Feature;
  readonly request: InputRequest;
  readonly read$: (answer: unknown) => Observable<Answer | undefined>;
}
