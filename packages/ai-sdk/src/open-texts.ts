import type { Citation, ModelChunk } from 'millrace';
import { defined, isRecord } from 'millrace/values';
import { countAt, type JsonRecord, listAt, textAt } from '@millrace/wire';
import { mergedMetadata, toVendorData } from './vendor-parts.js';

type Chunks = readonly ModelChunk[];

/** A block of text or reasoning that has started. */
interface OpenBlock {
  readonly type: 'text' | 'thinking';
  readonly id: string;
  isShown: boolean;
  metadata: JsonRecord | undefined;
}

export interface OpenTexts {
  readonly start: (type: OpenBlock['type'], part: JsonRecord) => Chunks;
  readonly delta: (type: OpenBlock['type'], part: JsonRecord) => Chunks;
  readonly end: (type: OpenBlock['type'], part: JsonRecord) => Chunks;
  /** A source supports the next text that ends, or the last one. */
  readonly source: (part: JsonRecord) => void;
  /** Another part was emitted: the next text is a message of its own. */
  readonly other: () => void;
  /** Ends all blocks: their own ends may be missing. */
  readonly close: () => Chunks;
  /** Whether reasoning is under way. */
  readonly isThinking: () => boolean;
}

/** Reads the blocks of text and reasoning of one answer. Starts and ends may be missing, and blocks may overlap. */
export const createOpenTexts = (vendor: string): OpenTexts => {
  const open = new Map<string, OpenBlock>();
  let sources: readonly JsonRecord[] = [];
  /** The ids and URLs of sources that exact citations have named. */
  const cites = new Set<string>();
  /** The last block that emitted something, and whether anything else came after it. */
  let latest: OpenBlock | undefined;
  let hasText = false;
  let isSeparate = false;

  const keyOf = (type: OpenBlock['type'], id: string): string => `${type}/${id}`;
  const blockOf = (type: OpenBlock['type'], part: JsonRecord): OpenBlock => {
    const id = textAt(part, 'id');
    const known = open.get(keyOf(type, id));
    const block = known ?? { type, id, isShown: false, metadata: undefined };
    if (known === undefined) open.set(keyOf(type, id), block);
    block.metadata = mergedMetadata(block.metadata, part['providerMetadata']);
    return block;
  };
  /** Returns the chunks before the first delta of a block, or before the next one after another block. */
  const before = (block: OpenBlock): Chunks => {
    const previous = latest;
    latest = block;
    block.isShown = true;
    const isSame = previous === block && !isSeparate;
    const separate = isSeparate || previous?.type === 'thinking';
    isSeparate = false;
    if (block.type === 'thinking' || isSame) return [];
    const isFirst = !hasText;
    hasText = true;
    if (isFirst) return [];
    return [separate ? { type: 'textStart', separate } : { type: 'textStart' }];
  };
  const closed = (block: OpenBlock): Chunks => {
    open.delete(keyOf(block.type, block.id));
    const data = toVendorData(vendor, block.metadata);
    if (data.vendorData === undefined) return [];
    return [...(latest === block ? [] : before(block)), { type: block.type, text: '', ...data }];
  };
  const cited = (part: JsonRecord): Chunks => {
    if (!hasText) return [];
    const exact = listAt(part, 'citations').filter(isRecord);
    for (const key of ['id', 'url']) {
      exact
        .map((it) => textAt(it, 'source', key))
        .filter((it) => it !== '')
        .forEach((it) => cites.add(it));
    }
    const others = sources.filter((it) => !['id', 'url'].some((key) => cites.has(textAt(it, key))));
    sources = [];
    return [...exact.map(toExactCitation), ...others.map(toCitation)].map((citation) => ({
      type: 'citation',
      citation,
    }));
  };
  return {
    start: (type, part) => {
      blockOf(type, part);
      return [];
    },
    delta: (type, part) => {
      const block = blockOf(type, part);
      const text = textAt(part, 'delta');
      return text === '' ? [] : [...before(block), { type, text }];
    },
    end: (type, part) => {
      const block = blockOf(type, part);
      const citations = type === 'text' && block.isShown ? cited(part) : [];
      return [...citations, ...closed(block)];
    },
    source: (part) => {
      sources = [...sources, part];
    },
    other: () => {
      isSeparate = true;
    },
    close: () => [...[...open.values()].flatMap(closed), ...cited({})],
    isThinking: () => [...open.values()].some(({ type }) => type === 'thinking'),
  };
};

const toCitation = (source: JsonRecord): Citation =>
  defined({
    url: textAt(source, 'url') || undefined,
    title: textAt(source, 'title') || textAt(source, 'filename') || undefined,
  });

const toExactCitation = (citation: JsonRecord): Citation => {
  const { source } = citation;
  return {
    ...toCitation(isRecord(source) ? source : {}),
    ...defined({
      citedText: textAt(citation, 'citedText') || undefined,
      start: countAt(citation, 'startIndex'),
      end: countAt(citation, 'endIndex'),
    }),
  };
};
