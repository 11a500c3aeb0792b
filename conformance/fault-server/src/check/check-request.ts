import type { SeenRequest } from '../scenario.js';

/** What a vendor takes beside the fields of the wire. */
export interface CheckOptions {
  /** Names of such fields, at any depth. */
  readonly allow?: readonly string[];
}

/** Lists why the vendor of a wire would refuse a request; nothing, where it would take it. Header names are in lower case. */
export type CheckRequest = (
  headers: SeenRequest['headers'],
  body: unknown,
  options?: CheckOptions,
) => readonly string[];
