import { bodyFaults } from './bodies.js';
import { breakFaults } from './breaks.js';
import { chatToolFaults } from './chat-tools.js';
import { encodingFaults } from './encodings.js';
import { endingFaults, usageFaults } from './endings.js';
import type { Fault } from './fault.js';
import { floodFaults } from './floods.js';
import { inStreamFaults } from './in-stream.js';
import { messagePreviewFaults } from './messages-previews.js';
import { oddAnswerFaults } from './odd-answers.js';
import { otherToolFaults } from './other-tools.js';
import { previewFaults, responsePreviewFaults } from './previews.js';
import { quirkFaults } from './quirks.js';
import { echoFaults, redirectFaults } from './redirects.js';
import { sequenceFaults } from './sequences.js';
import { statusFaults } from './statuses.js';
import { toolFaults } from './tool-calls.js';
import { vendorItemFaults } from './vendor-items.js';
import { waitFaults } from './waits.js';

/** Every fault that a client must stand, and what must come of it. */
export const faults: readonly Fault[] = [
  ...statusFaults,
  ...waitFaults,
  ...breakFaults,
  ...bodyFaults,
  ...inStreamFaults,
  ...sequenceFaults,
  ...previewFaults,
  ...responsePreviewFaults,
  ...messagePreviewFaults,
  ...oddAnswerFaults,
  ...vendorItemFaults,
  ...quirkFaults,
  ...encodingFaults,
  ...floodFaults,
  ...redirectFaults,
  ...echoFaults,
  ...endingFaults,
  ...usageFaults,
  ...toolFaults,
  ...chatToolFaults,
  ...otherToolFaults,
];
