import type { ModelChunk } from '@millrace/core';
import { isRecord } from '@millrace/core/values';
import { encodeSignature, type JsonRecord, signatureChunks } from '@millrace/wire';
import { fieldsOf, textIn } from './fields.js';
import type { ReaderSource } from './wire-model.js';

export interface CallSource extends Pick<ReaderSource, 'vendor' | 'toolName'> {
  /** See `Profile.sendsWholeCalls`. */
  readonly sendsWholeCalls?: boolean | undefined;
}

/** Mutable, because spreads would dominate the cost of reading a chunk. */
type MutableToolCallChunk = { -readonly [Field in keyof ToolCallChunk]: ToolCallChunk[Field] };

type ToolCallChunk = Extract<ModelChunk, { readonly type: 'toolCall' }>;

/** Reads a chunk of a tool call, preceded by its signature if the vendor sends one. */
export const callChunks = (call: JsonRecord, source: CallSource): readonly ModelChunk[] => {
  const { index, id, function: called, extra_content: extra } = call;
  const chunk = callOf(called, source);
  if (typeof index === 'number' && source.sendsWholeCalls !== true) chunk.index = index;
  if (textIn(id) !== '') chunk.id = textIn(id);
  return isRecord(extra)
    ? [...signatureChunks(encodeSignature(source.vendor, 'extra_content', extra)), chunk]
    : [chunk];
};

/** Reads the name and arguments of a call. Some servers send the arguments as an object. */
export const callOf = (called: unknown, { toolName }: CallSource): MutableToolCallChunk => {
  const { name, arguments: written } = fieldsOf(called);
  const chunk: MutableToolCallChunk = { type: 'toolCall' };
  if (textIn(name) !== '') chunk.name = toolName(textIn(name));
  if (typeof written === 'string') chunk.json = written;
  else if (written === undefined || written === null) chunk.json = '';
  else chunk.input = written;
  return chunk;
};
