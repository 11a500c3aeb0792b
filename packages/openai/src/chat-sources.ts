import type { ModelChunk } from 'millrace';
import { type JsonRecord, textAt } from '@millrace/wire';
import { citationOf } from './citations.js';
import { listIn, textIn } from './fields.js';

export interface ChatSources {
  /** Reads the sources in a message or a delta, each once. */
  readonly read: (message: JsonRecord) => readonly ModelChunk[];
  /** Keeps the list of sources that some vendors repeat in every event. */
  readonly keep: (event: JsonRecord) => void;
  /** Returns the sources that were kept, each once. */
  readonly finish: () => readonly ModelChunk[];
}

/**
 * Collects the sources of one chat completion: `annotations` of OpenAI and OpenRouter, and the lists `citations` and
 * `search_results` of Perplexity and xAI.
 */
export const createChatSources = (vendor: string): ChatSources => {
  const seen = new Set<string>();
  let urls: readonly unknown[] = [];
  let results: readonly unknown[] = [];
  const once = (annotations: readonly unknown[]): readonly ModelChunk[] =>
    annotations.flatMap((annotation) => {
      const key = JSON.stringify(annotation);
      if (seen.has(key)) return [];
      seen.add(key);
      return citationOf(annotation, vendor);
    });
  return {
    read: ({ annotations }) => (annotations === undefined ? [] : once(listIn(annotations))),
    keep: ({ citations, search_results }) => {
      if (citations !== undefined) urls = listIn(citations);
      if (search_results !== undefined) results = listIn(search_results);
    },
    finish: () => {
      const titled = new Set(results.map((result) => textAt(result, 'url')));
      const bare = urls
        .map((it) => (typeof it === 'string' ? { url: it } : it))
        .filter((it) => !titled.has(textAt(it, 'url')));
      return once([...results, ...bare]);
    },
  };
};

/** A reference of Mistral: the indexes of entries of a tool result. */
export const referenceChunks = (part: JsonRecord, vendor: string): readonly ModelChunk[] =>
  listIn(part['reference_ids']).flatMap((id): readonly ModelChunk[] => {
    const place = typeof id === 'number' ? id : Number(textIn(id) || Number.NaN);
    if (!Number.isInteger(place) || place < 0) return [];
    const vendorData = { vendor, data: part };
    return [{ type: 'citation', citation: { documentIndex: place, vendorData } }];
  });
