/** The client side of the confidential token: keys, balances, calls that a signer signs, and runs of batches. */
export type { AccountStatement } from '#lib/disclosure/account-statement.ts'
export type { StatementLine } from '#lib/disclosure/statement.ts'
export { formatUnits as formatAmount, parseUnits as parseAmount } from '#lib/text/money.ts'
export { type ConfidentialAccount, readConfidentialAccount } from '#lib/wallet/account.ts'
export {
  approvalKey,
  type NamedApprovalKey,
  nameApprovalKey,
  openApprovalKey,
} from '#lib/wallet/approval-key.ts'
export { type EventArchive, openHttpArchive } from '#lib/wallet/archive.ts'
export { type Balance, type SyncedBalance, syncBalance } from '#lib/wallet/balance.ts'
export {
  buildDelegation,
  buildDeposit,
  buildMerge,
  buildRegister,
  buildRevocation,
  buildTransfer,
  buildWithdraw,
  proveTransferAhead,
  type SignedSpending,
  signSpending,
} from '#lib/wallet/calls.ts'
export type { Opening } from '#lib/wallet/commitment.ts'
export {
  type Deployment,
  type DeploymentDocument,
  fetchDeployment,
  openDeployment,
  type RelayDocument,
} from '#lib/wallet/deployment.ts'
export { type Delegation, readOwnDelegations, revokeAll } from '#lib/wallet/escrow.ts'
export { type AnyHolder, type ConfidentialKeys, type Holder, openWallet } from '#lib/wallet/keys.ts'
export {
  formatManifest,
  hashSeal,
  type Manifest,
  type ManifestDelegation,
  type ManifestPayout,
  signManifest,
} from '#lib/wallet/manifest.ts'
export { decryptForSelf, encryptForSelf, type OwnAmountBinding } from '#lib/wallet/own-amount.ts'
export type { Prover } from '#lib/wallet/prover.ts'
export { type SealBinding, sealPayout } from '#lib/wallet/seal.ts'
export { sealOwnPayout } from '#lib/wallet/seal-key.ts'
export { keypairSigner, type Signer } from '#lib/wallet/signer.ts'
export type { CallOptions, SignedCall, SubmitCall } from '#lib/wallet/transaction.ts'
export { LedgerError, type LedgerErrorCode, WalletError, type WalletErrorCode } from '#lib/wallet/wallet-error.ts'
export { type ApprovalRequest, type Approved, type ApprovedPayee, approveRun } from './approve-run.ts'
export { payBatch } from './batch-payment.ts'
export type { BatchProgress, BatchRequest } from './batch-request.ts'
export type { PaidBatch } from './batch-result.ts'
export { handOver, type OpenedSeal, readHandedOver } from './hand-over.ts'
export {
  type DelegationNote,
  type NoteStore,
  type OwnNotes,
  openNotes,
  type PayoutNote,
  type SealContents,
  type SealNote,
  storedNotes,
} from './own-notes.ts'
export { type OwnPayment, type OwnPayments, readOwnPayments } from './own-payments.ts'
export { readStatement } from './own-statement.ts'
export { type AmountRow, matchPayees, type NewPayee, type Payee } from './payees.ts'
export { runBatch } from './run.ts'
export { RunError, type RunErrorCode } from './run-error.ts'
export type { RunRequest } from './run-request.ts'
export { openSep43Signer, type Sep43Wallet } from './sep43.ts'
export { addToChallenge, beginSignIn, finishSignIn, type SignInOptions, signIn } from './sign-in.ts'
export { sponsorCall } from './sponsored-call.ts'
export { inTurn } from './turns.ts'
