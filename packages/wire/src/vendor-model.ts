import {
  type Model,
  type ModelContext,
  type ModelRequest,
  type ModelTimeouts,
  type RequestOptions,
  retry,
  timeouts,
} from '@millrace/core';
import { defined } from '@millrace/core/adapter';
import { shortenOnOverflow } from '@millrace/core/fitting';
import { defer } from 'rxjs';
import { capsOf } from './caps.js';
import type { Exchange } from './exchange.js';
import { exchange$ } from './exchange-stream.js';
import type { VendorSettings } from './settings.js';

/** What makes a vendor's model. */
export interface VendorSpec {
  /** What events and errors call the model. */
  readonly name: string;
  readonly unsupported?: readonly (keyof RequestOptions)[];
  /** Maps a request, once for each attempt. It throws a `MillraceError` for one that the vendor cannot take. */
  exchange(request: ModelRequest, context: ModelContext): Omit<Exchange, 'caps'>;
}

/** Long enough for a model that thinks in silence, short enough that a user still waits. */
const patience: ModelTimeouts = { firstChunkMs: 120_000, chunkMs: 60_000 };

/**
 * Makes a model of a mapping: one `exchange$` an attempt, with time-outs for each, sent again if that may
 * help: after a failure that passes, or shorter if the provider finds it too long.
 */
export const vendorModel = (
  spec: VendorSpec,
  settings: Pick<VendorSettings, 'retry' | 'timeouts' | 'caps'> = {},
): Model => {
  const { name, unsupported } = spec;
  const caps = capsOf(settings.caps);
  const once: Model = {
    name,
    ...(unsupported === undefined ? {} : { unsupported }),
    stream$: (request, context) =>
      defer(() => exchange$({ ...spec.exchange(request, context), caps }, context)),
  };
  const timed = timeouts(once, { ...patience, ...defined(settings.timeouts) });
  return shortenOnOverflow(settings.retry === false ? timed : retry(timed, settings.retry));
};
