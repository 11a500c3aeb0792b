export { openFiles } from '@millrace/store';
