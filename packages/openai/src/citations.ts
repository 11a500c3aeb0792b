import type { Citation, ModelChunk } from 'millrace';
import { isRecord } from 'millrace/values';
import { at, countAt, textAt } from '@millrace/wire';

type Mutable<Type> = { -readonly [Field in keyof Type]: Type[Field] };

/**
 * Reads an annotation of text: a list of one citation, or an empty one if it cites nothing. The Responses API sends its fields
 * directly, chat completions within a field that has the name of its type.
 */
export const citationOf = (annotation: unknown, vendor: string): readonly ModelChunk[] => {
  const nested = at(annotation, textAt(annotation, 'type'));
  const source = isRecord(nested) ? nested : annotation;
  const first = (...names: readonly string[]): string =>
    names.map((name) => textAt(source, name)).find((text) => text !== '') ?? '';
  const citation: Mutable<Citation> = {};
  const [url, title] = [first('url'), first('title', 'filename', 'name')];
  const [citedText, fileId] = [first('quote', 'content', 'snippet'), first('file_id')];
  const [start, end] = [countAt(source, 'start_index'), countAt(source, 'end_index')];
  if (url !== '') citation.url = url;
  if (title !== '') citation.title = title;
  if (citedText !== '') citation.citedText = citedText;
  if (fileId !== '') citation.fileId = fileId;
  if (Object.keys(citation).length === 0) return [];
  if (start !== undefined && end !== undefined && end >= start) {
    citation.start = start;
    citation.end = end;
  }
  return [
    { type: 'citation', citation: { ...citation, vendorData: { vendor, data: annotation } } },
  ];
};
