import type { BetaTextCitationParam as TextCitationParam } from '@anthropic-ai/sdk/resources/beta/messages';
import type { Citation } from 'millrace';
import { defined, isRecord } from 'millrace/values';
import { at, countAt, type JsonRecord, textAt } from '@millrace/wire';
import { fieldsBack, toVendorData } from './vendor-block.js';

type Unit = NonNullable<Citation['location']>['unit'];

/** The fields of each type of location, with its unit. */
const locations: ReadonlyMap<unknown, readonly [Unit, start: string, end: string]> = new Map([
  ['char_location', ['character', 'start_char_index', 'end_char_index']],
  ['page_location', ['page', 'start_page_number', 'end_page_number']],
  ['content_block_location', ['block', 'start_block_index', 'end_block_index']],
  ['search_result_location', ['block', 'start_block_index', 'end_block_index']],
]);

/** Reads a citation, and keeps it as it is: Anthropic wants it back with its text. */
export const toCitation = (citation: JsonRecord): Citation => ({
  ...defined({
    url: filled(textAt(citation, 'url') || sourceUrl(citation)),
    title: filled(textAt(citation, 'title') || textAt(citation, 'document_title')),
    citedText: filled(textAt(citation, 'cited_text')),
    documentIndex: countAt(citation, 'document_index'),
    fileId: filled(textAt(citation, 'file_id')),
    location: locationOf(citation),
  }),
  ...toVendorData(citation),
});

const filled = (text: string): string | undefined => (text === '' ? undefined : text);

/** The source of a search result that your own tool returned; often a URL. */
const sourceUrl = (citation: JsonRecord): string => {
  const source = textAt(citation, 'source');
  return URL.canParse(source) ? source : '';
};

const locationOf = (citation: JsonRecord): Citation['location'] => {
  const known = locations.get(citation['type']);
  if (known === undefined) return undefined;
  const [unit, startField, endField] = known;
  const [start, end] = [countAt(citation, startField), countAt(citation, endField)];
  return start === undefined || end === undefined ? undefined : { unit, start, end };
};

/** Response fields that requests may not contain. */
const unsendable = 'file_id';

/** The citations to send back with their text; those of other vendors are left out. */
export const citationsBack = (citations: readonly Citation[] = []): TextCitationParam[] =>
  citations.flatMap(({ vendorData }): TextCitationParam[] => {
    const { [unsendable]: _, ...fields } = fieldsBack(vendorData);
    return isLocation(fields) ? [fields] : [];
  });

const isLocation = (value: unknown): value is TextCitationParam =>
  isRecord(value) && typeof at(value, 'type') === 'string';
