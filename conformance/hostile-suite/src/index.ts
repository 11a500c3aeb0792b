import { addressScenes } from './attacks/addresses.js';
import { approvalScenes } from './attacks/approvals.js';
import { atRestScenes } from './attacks/at-rest.js';
import { callbackScenes } from './attacks/callbacks.js';
import { chatBodyScenes } from './attacks/chat-bodies.js';
import { crossSiteScenes } from './attacks/cross-site.js';
import { deciderScenes } from './attacks/deciders.js';
import { doubleExecutionScenes } from './attacks/double-execution.js';
import { keyScenes } from './attacks/keys.js';
import { limitScenes } from './attacks/limits.js';
import { otherUserScenes } from './attacks/other-users.js';
import { storeScenes } from './attacks/stores.js';
import { tenantScenes } from './attacks/tenants.js';
import { textScenes } from './attacks/texts.js';
import type { Scene } from './scene.js';

export type { Row, Scene } from './scene.js';
export { tableOf } from './table.js';

/** Every promise that the suite attacks. */
export const scenes: readonly Scene[] = [
  ...deciderScenes,
  ...approvalScenes,
  ...otherUserScenes,
  ...tenantScenes,
  ...crossSiteScenes,
  ...chatBodyScenes,
  ...addressScenes,
  ...keyScenes,
  ...limitScenes,
  ...doubleExecutionScenes,
  ...storeScenes,
  ...atRestScenes,
  ...textScenes,
  ...callbackScenes,
];
