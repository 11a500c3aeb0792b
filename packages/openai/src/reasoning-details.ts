import type { ModelChunk } from 'millrace';
import { isRecord } from 'millrace/values';
import { at, encodeSignature, type JsonRecord, signatureChunks, textAt } from '@millrace/wire';

/** The `reasoning_details` of one answer, which OpenRouter wants back unchanged. */
export interface ReasoningDetails {
  readonly add: (details: readonly unknown[]) => void;
  /** Inserts the collected details as a signature before the first chunk that is not thinking. */
  readonly flush: (chunks: readonly ModelChunk[]) => readonly ModelChunk[];
}

/** Collects the details of one answer, and merges the chunks of each detail. */
export const createReasoningDetails = (vendor: string): ReasoningDetails => {
  let gathered: JsonRecord[] = [];
  return {
    add: (details) => {
      for (const detail of details.filter(isRecord)) {
        const last = gathered.at(-1);
        if (last !== undefined && isSame(last, detail))
          gathered.push(mergeDetails(gathered.pop(), detail));
        else gathered.push(detail);
      }
    },
    flush: (chunks) => {
      if (gathered.length === 0) return chunks;
      const end = chunks.findIndex(({ type }) => type !== 'thinking' && type !== 'usage');
      if (end === -1) return chunks;
      const signature = encodeSignature(vendor, 'reasoning_details', gathered);
      gathered = [];
      return [...chunks.slice(0, end), ...signatureChunks(signature), ...chunks.slice(end)];
    },
  };
};

export const detailText = (detail: unknown): string =>
  textAt(detail, 'text') || textAt(detail, 'summary');

/** Chunks of one detail are consecutive, and have the same type, ID and index. */
const isSame = (last: JsonRecord, next: JsonRecord): boolean =>
  (next['type'] === 'reasoning.text' || next['type'] === 'reasoning.summary') &&
  last['type'] === next['type'] &&
  ['id', 'index'].every((key) => {
    const [one, other] = [at(last, key) ?? undefined, at(next, key) ?? undefined];
    return one === undefined || other === undefined || one === other;
  });

const mergeDetails = (last: JsonRecord = {}, next: JsonRecord): JsonRecord => {
  const present = Object.entries(next).filter(([, value]) => value !== null && value !== undefined);
  const texts = ['text', 'summary'].filter((key) => typeof at(next, key) === 'string');
  const concatenated = texts.map((key) => [key, textAt(last, key) + textAt(next, key)] as const);
  return { ...last, ...Object.fromEntries(present), ...Object.fromEntries(concatenated) };
};
