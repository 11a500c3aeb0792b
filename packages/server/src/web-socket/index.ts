// Chats of the AI SDK over WebSocket. Of the package, only this entry loads `ws`.
export { answerSocket$, type AnswerSocketOptions, type ChatSocket } from './answer-socket.js';
export {
  type AttachOptions,
  type UpgradeProtocol,
  webSocketChat,
  type WebSocketChatOptions,
} from './web-socket-chat.js';
