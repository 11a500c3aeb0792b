import type { Citation, MillraceError, Usage } from 'millrace';
import { linkOf } from '../parts/source.js';
import { tokensOf } from './settings.js';

/** The fields of a response that are the same in each. */
export const fixedFields = {
  object: 'response',
  background: false,
  error: null,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  temperature: null,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_p: null,
  truncation: 'disabled',
  usage: null,
};

export const outputText = (text: string, annotations: readonly object[] = []) => ({
  type: 'output_text',
  text,
  annotations: [...annotations],
  logprobs: [],
});

/** Converts a citation to an annotation, by default of the given range of the text; undefined for an unnamed source. */
export const annotationOf = (
  citation: Citation,
  { from, to }: { readonly from: number; readonly to: number },
): object | undefined => {
  const { title, fileId, documentIndex, start = from, end = to } = citation;
  const url = linkOf(citation);
  if (url !== undefined) {
    return { type: 'url_citation', start_index: start, end_index: end, url, title: title ?? url };
  }
  const filename = title ?? fileId;
  return filename === undefined
    ? undefined
    : {
        type: 'file_citation',
        file_id: fileId ?? `document_${documentIndex ?? 0}`,
        filename,
        index: end,
      };
};

export const summaryText = (text: string) => ({ type: 'summary_text', text });

export const usageOf = (usage: Usage, before: Usage) => {
  const [all, spent] = [tokensOf(usage), tokensOf(before)];
  const since = (kind: keyof typeof all): number => all[kind] - spent[kind];
  return {
    input_tokens: since('input'),
    input_tokens_details: {
      cached_tokens: since('cached'),
      cache_write_tokens: since('written'),
    },
    output_tokens: since('output'),
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: since('total'),
  };
};

export const codeOf = ({ code }: MillraceError): string => {
  switch (code) {
    case 'rateLimited':
      return 'rate_limit_exceeded';
    case 'guardRejected':
    case 'contextTooLong':
    case 'invalidRequest':
    case 'invalidResume':
      return 'invalid_prompt';
    default:
      return 'server_error';
  }
};
