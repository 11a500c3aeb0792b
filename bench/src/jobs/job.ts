import type { Adapter, Setup } from '../adapter.js';
import type { Guard } from '../guard.js';

/** Opens the adapter that is measured. */
export type OpenHere = (setup?: Omit<Setup, 'baseURL'>) => Adapter | Promise<Adapter>;

/** What a process of its own measures of one adapter: what it is asked, and what it says, are plain JSON. */
export interface Job<Options, Result> {
  readonly name: string;
  readonly isOptions: Guard<Options>;
  readonly isResult: Guard<Result>;
  readonly run: (open: OpenHere, options: Options) => Promise<Result>;
}
