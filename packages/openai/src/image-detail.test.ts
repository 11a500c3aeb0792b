import { expect, it } from '@jest/globals';
import { chatPart } from './chat-messages.js';
import { responsesPart } from './responses-input.js';

const image = {
  type: 'image',
  source: { kind: 'url', url: 'https://example.com/a.png' },
} as const;

it.each([
  [undefined, undefined, 'auto'],
  ['low', 'low', 'low'],
  ['high', 'high', 'high'],
  ['original', 'high', 'original'],
] as const)('R5: an image has the detail %s', (detail, chat, responses) => {
  const block = detail === undefined ? image : { ...image, detail };
  const { url } = image.source;
  expect(chatPart(block, 'm')).toEqual({
    type: 'image_url',
    image_url: { url, ...(chat === undefined ? {} : { detail: chat }) },
  });
  expect(responsesPart(block, 'm')).toEqual({
    type: 'input_image',
    image_url: url,
    detail: responses,
  });
});
