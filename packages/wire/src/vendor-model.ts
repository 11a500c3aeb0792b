import {
  type Model,
  type ModelContext,
  type ModelRequest,
  type RequestOptions,
  retry,
  shortenOnOverflow,
  timeouts,
} from 'millrace';
import { defined } from 'millrace/values';
import { defer } from 'rxjs';
import { capsOf } from './caps.js';
import type { Endings, Exchange } from './exchange.js';
import { exchange$ } from './exchange-stream.js';
import type { VendorSettings } from './settings.js';

/** How a vendor's model differs from others. */
export interface VendorSpec {
  /** The name of the model in events and errors. */
  readonly name: string;
  readonly unsupported?: readonly (keyof RequestOptions)[];
  /** Maps a request, once per attempt. Throws a `MillraceError` if the vendor cannot take it. */
  exchange(
    request: ModelRequest,
    context: ModelContext,
  ): Omit<Exchange, 'caps' | 'fetch' | 'endings'>;
}

/** Long enough for a model that thinks without streaming, short enough for a waiting user. */
const defaultTimeouts: ModelContext['timeouts'] = { firstChunkMs: 120_000, chunkMs: 60_000 };

/**
 * Creates a model from a mapping: each attempt is one `exchange$`, in what `dependable` adds.
 */
export const vendorModel = (
  spec: VendorSpec,
  settings: Pick<VendorSettings, 'fetch' | 'retry' | 'timeouts' | 'caps'> = {},
): Model => {
  const { name, unsupported } = spec;
  const caps = capsOf(settings.caps);
  const { fetch } = settings;
  const endings: Endings = { staysOpen: false };
  const once: Model = {
    name,
    ...(unsupported === undefined ? {} : { unsupported }),
    stream$: (request, context) =>
      defer(() => exchange$({ ...spec.exchange(request, context), caps, fetch, endings }, context)),
  };
  return dependable(once, settings);
};

/**
 * Adds what the models of all vendors have around one attempt: timeouts, retries after a transient failure, and a shorter
 * conversation if it exceeds the context window.
 */
export const dependable = (
  once: Model,
  settings: Pick<VendorSettings, 'retry' | 'timeouts'>,
): Model => {
  const timed = timeouts(once, { ...defaultTimeouts, ...defined(settings.timeouts) });
  return shortenOnOverflow(settings.retry === false ? timed : retry(timed, settings.retry));
};
