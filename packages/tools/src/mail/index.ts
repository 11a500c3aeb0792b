// A tool that sends e-mail.
export {
  type Mail,
  type MailApprover,
  sendMail,
  type SendMailOptions,
  type SmtpServer,
} from './send-mail.js';
