// The types of the interface, written by `npm run client` from its OpenAPI document.

export interface paths {
    "/auth/sep10/challenge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a challenge for a wallet to sign
         * @description SEP-10. The challenge is valid for 5 minutes and can be used once. Nothing is stored.
         */
        get: operations["getChallenge"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/sep10/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Exchange a signed challenge for a session
         * @description The first sign-in founds an organisation, unless an invite for the user is open.
         */
        post: operations["signInWithWallet"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/sep10": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a challenge for a wallet to sign
         * @description The challenge at the one URL that SEP-10 knows and stellar.toml names. Wallets of any origin may ask.
         */
        get: operations["getStandardChallenge"];
        put?: never;
        /**
         * Exchange a signed challenge for a session
         * @description Takes JSON or a form, as SEP-10 wants it, and gives the session as `token`, too.
         */
        post: operations["signInWithStandard"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/idp": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Exchange an access token of the identity provider for a session
         * @description The session never outlives the token.
         */
        post: operations["signInWithProvider"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/transfer": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Have the network fee of a signed confidential transfer paid
         * @description The inner transaction is a single `confidential_transfer` whose source is the account of the session, signed and valid for 10 to 330 seconds more. It is wrapped in a fee bump of twice its fee, sent, and waited for. The same `signedXDR` may be sent again at any time: it is paid for once, and every answer says what the ledger says. Without an answer, or after `transfer-open`, send it again, unchanged.
         */
        post: operations["sponsorTransfer"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/contractors": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List your contractors, newest first */
        get: operations["listContractors"];
        put?: never;
        /**
         * Add a contractor
         * @description `ready` if the address is registered with the confidential token, else `invited`.
         */
        post: operations["createContractor"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/contractors/bulk": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Add many contractors at once
         * @description Each row stands alone: a row that cannot be a contractor is an error of its own, the others are imported.
         */
        post: operations["importContractors"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/contractors/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Look up a contractor
         * @description For its employer, and for the user that it is.
         */
        get: operations["getContractor"];
        put?: never;
        post?: never;
        /**
         * Remove a contractor
         * @description Its payouts stay; those that are `draft` or `ready` are canceled.
         */
        delete: operations["removeContractor"];
        options?: never;
        head?: never;
        /**
         * Change a contractor
         * @description The employer may change every field; the contractor its own `address`, to an account that it has signed in with or joined to itself. `null` clears an optional field. `inactive` cancels its `draft` and `ready` payouts.
         */
        patch: operations["changeContractor"];
        trace?: never;
    };
    "/contractors/{id}/invite": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Invite a contractor, or do so again
         * @description The link holds for 14 days and once; earlier ones become void. It is mailed where mail is configured.
         */
        post: operations["inviteContractor"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/invites/{token}/accept": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Accept an invite
         * @description Links the caller to the contractor record. A wallet’s account becomes its address if it has none.
         */
        post: operations["acceptInvite"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/batches": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List your batches, newest first */
        get: operations["listBatches"];
        put?: never;
        /** Start a batch */
        post: operations["createBatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/batches/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Look up a batch with its payouts
         * @description Payouts keep the order of their instructions. The request also settles the transfers that the ledger has decided.
         */
        get: operations["getBatch"];
        put?: never;
        post?: never;
        /**
         * Remove a batch of which nothing was ever sent
         * @description Its payouts go with it.
         */
        delete: operations["removeBatch"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/batches/{id}/instructions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Add payouts to a draft
         * @description One payout for each instruction that names a contractor who is `ready` and not in the batch yet; the others come back as errors. The amount is in the proof that you will send; what you give here of it only you can read.
         */
        post: operations["instructBatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/batches/{id}/ready": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Lock a batch: it is ready to be sent
         * @description From now on its payouts can be paid, each by a transfer of its own. The call may be repeated.
         */
        post: operations["lockBatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/batches/{id}/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How far a batch has come
         * @description For polling while payouts are sent.
         */
        get: operations["getBatchProgress"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/payouts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the payouts that you make and those made out to you, newest first */
        get: operations["listPayouts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/payouts/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Cancel a payout that is not on its way
         * @description A `draft`, `ready` or `failed` one, or a `pending` one with an `error`, of whose transfer nothing can be learned any more. The contractor may then be instructed again while the batch is a draft.
         */
        delete: operations["cancelPayout"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Look up yourself and your roles
         * @description What an application needs to choose between onboarding, employer and contractor.
         */
        get: operations["getMe"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Name your organisation, or found one */
        patch: operations["nameOrganisation"];
        trace?: never;
    };
    "/me/identities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Bring your other identity into your organisation
         * @description A wallet and an email of one person: the session of the other one proves that it is yours.
         */
        post: operations["joinIdentity"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/funding/vault": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Look up the vault that backs the confidential balances */
        get: operations["getVault"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/funding/faucet": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Get test USDC into your confidential balance
         * @description For the account of the session, a wallet that has joined it, or the address of the contractor record that the caller is linked to. The deposit arrives in the receiving balance: `merge` makes it spendable.
         */
        post: operations["fund"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Have the relay pay a confidential batch
         * @description One transfer for each amount (base units), from accounts of the relay’s own, to your contractors who are `ready`, oldest first. Without `amounts` the default batch runs: three transfers. One job of a user runs at a time.
         */
        post: operations["startJob"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/batch/{jobId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How far a job of the relay has come */
        get: operations["getJob"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/withdraw": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Withdraw: never done here */
        post: operations["withdraw"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auditor/disclose": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Disclose to an auditor: never done here */
        post: operations["disclose"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whether the service is up, and what is configured
         * @description Touches neither database nor network.
         */
        get: operations["getHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/ready": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whether the service can reach all that it needs
         * @description Looked up at most every five seconds, however many ask.
         */
        get: operations["getReadiness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the metrics of the service, for Prometheus */
        get: operations["getMetrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cron/sweep": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Do the periodic chores
         * @description For a scheduler, where no process lasts that would do them by itself.
         */
        get: operations["sweep"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This document */
        get: operations["getDocument"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Session: {
            /** @description an HS256 JWT: send it as `Authorization: Bearer <session>` */
            session: string;
            /**
             * @description `ledger` after a wallet sign-in, `idp` after one by email
             * @enum {string}
             */
            kind: "ledger" | "idp";
            /** @description the account address (`ledger`), or the provider’s id of the user (`idp`) */
            sub: string;
        };
        Challenge: {
            /** @description what the wallet is to sign: a transaction envelope, base64 XDR */
            transaction: string;
            /** @description the network that the signature is for */
            network_passphrase: string;
        };
        TransferResult: {
            /** @description hash of the transaction on the ledger, 64 hex digits */
            hash: string;
            /** @constant */
            status: "SUCCESS";
        };
        Contractor: {
            id: string;
            name: string;
            /** @enum {string} */
            status: "invited" | "onboarding" | "ready" | "inactive";
            /** Format: date-time */
            createdAt: string;
            email?: string;
            /** @description ledger address (G… or C…), once known */
            address?: string;
            /** @description public viewing key as the ledger has it, 128 hex digits */
            pvk?: string;
            rate?: {
                amount: string;
                /** @enum {string} */
                currency: "USDC";
            };
            /** Format: date-time */
            lastPaidAt?: string;
        };
        Batch: {
            id: string;
            name: string;
            /** @enum {string} */
            status: "draft" | "ready" | "started" | "completed" | "failed";
            /** @description payouts that are not canceled */
            payoutCount: number;
            /** @description those of them that are paid */
            settledCount: number;
            /** @description those of them that failed; they can be sent again */
            failedCount: number;
            /** Format: date-time */
            createdAt: string;
            /** Format: date-time */
            startedAt?: string;
            /** Format: date-time */
            completedAt?: string;
        };
        BatchProgress: {
            /** @enum {string} */
            status: "draft" | "ready" | "started" | "completed" | "failed";
            /** @description those of them that are paid */
            settledCount: number;
            /** @description those of them that failed; they can be sent again */
            failedCount: number;
            /** @description payouts that are not canceled */
            payoutCount: number;
        };
        Payout: {
            id: string;
            batchId: string;
            contractorId: string;
            /** @enum {string} */
            status: "draft" | "ready" | "pending" | "paid" | "failed" | "canceled";
            /** Format: date-time */
            createdAt: string;
            /** @description the contractor’s address when it was instructed */
            address?: string;
            /** @description hash of the transaction that pays it, once paid */
            txHash?: string;
            /** @description why it failed, or, of one that is pending, that nothing can be learned of its transfer */
            error?: string;
            /** @description as it came: opaque to the service */
            encryptedAmount?: string;
            /** Format: date-time */
            paidAt?: string;
        };
        BatchJob: {
            jobId: string;
            /**
             * @description `failed` if one of its transfers did not pay, once all have ended
             * @enum {string}
             */
            status: "running" | "completed" | "failed";
            /** @description epoch milliseconds */
            createdAt: number;
            /** @description one for each transfer that has ended */
            results: {
                /** @description position in the amounts, from 0 */
                i: number;
                /** @description hash on the ledger; empty if it never had one */
                hash: string;
                /** @enum {string} */
                status: "SUCCESS" | "FAILED" | "UNKNOWN";
            }[];
            /** @description why the first of those that failed did */
            error?: string;
        };
        Me: {
            sub: string;
            /** @enum {string} */
            kind: "ledger" | "idp";
            roles: ("employer" | "contractor")[];
            /** @description whether something is left to do before being paid */
            needsOnboarding: boolean;
            employer?: {
                orgId: string;
                orgName: string;
            };
            contractor?: {
                id: string;
                name: string;
                /** @enum {string} */
                status: "invited" | "onboarding" | "ready" | "inactive";
            };
            /** @description an invite for this user, to be accepted with its token */
            invite?: {
                company: string;
                /** @constant */
                role: "contractor";
                token: string;
            };
        };
        Health: {
            /** @constant */
            ok: true;
            /** @enum {string} */
            network: "local" | "testnet";
            /** @description whether an identity provider is configured */
            idp: boolean;
            /** @description whether the batch relay is configured */
            relay: boolean;
            /** @description whether a fee sponsor is configured */
            sponsor: boolean;
        };
        Readiness: {
            /** @description whether all of them are */
            ok: boolean;
            /** @description whether it is there, and details: a `problem` in words where it is not */
            database: {
                ok: boolean;
            } & {
                [key: string]: string | number | boolean;
            };
            /** @description whether it is there, and details: a `problem` in words where it is not */
            ledger: {
                ok: boolean;
            } & {
                [key: string]: string | number | boolean;
            };
            /** @description whether it is there, and details: a `problem` in words where it is not */
            sponsor: {
                ok: boolean;
            } & {
                [key: string]: string | number | boolean;
            };
            /** @description whether it is there, and details: a `problem` in words where it is not */
            relay: {
                ok: boolean;
            } & {
                [key: string]: string | number | boolean;
            };
        };
        Refusal: {
            /** @description what went wrong, for people */
            error: string;
            /** @description what went wrong, for programs */
            code: string;
            /** @description every bad field, if there are several */
            fields?: {
                path: string;
                message: string;
            }[];
            /** @description how many more fields are bad: `fields` lists at most 100 */
            fieldsOmitted?: number;
        } & {
            [key: string]: unknown;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    getChallenge: {
        parameters: {
            query: {
                account: string;
                /** @description not supported: one that is not empty is refused */
                memo?: string;
                /** @description none, or that of this service */
                home_domain?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The challenge */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "transaction": "AAAAAgAAAADg3G3hclysZlFitS+s5zWyiiJD5B0STWy5LXCj6i5yxQAAAGQ…",
                     *       "network_passphrase": "Test SDF Network ; September 2015"
                     *     }
                     */
                    "application/json": components["schemas"]["Challenge"];
                };
            };
            /**
             * @description A field is missing or malformed; the message names it.
             *
             *     - `account-invalid`: account is invalid
             *     - `account-required`: account required
             *     - `home-domain-invalid`: home-domain is invalid
             *     - `memo-invalid`: memo is invalid
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "account-invalid" | "account-required" | "home-domain-invalid" | "memo-invalid";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Too soon after the last time.
             *
             *     - `rate-limited`: too many requests from this address
             */
            429: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "rate-limited";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-configured";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    signInWithWallet: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "transaction": "AAAAAgAAAADg3G3hclysZlFitS+s5zWyiiJD5B0STWy5LXCj6i5yxQAAAGQ…"
                 *     }
                 */
                "application/json": {
                    /** @description the challenge with the wallet’s signature, base64 XDR */
                    transaction: string;
                };
            };
        };
        responses: {
            /** @description A session of the account */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "session": "eyJhbGciOiJIUzI1NiIsInR5cCI6InNlc3Npb24rand0In0.eyJraW5kIjoibGVkZ2VyIn0.c2lnbmF0dXJl",
                     *       "kind": "ledger",
                     *       "sub": "GBTL47RTFR5EKMZSXWOQU735WBK7LRPPDIDK3JTNTCZZ7NUBBRDTVSK2"
                     *     }
                     */
                    "application/json": components["schemas"]["Session"];
                };
            };
            /**
             * @description A field is missing or malformed; the message names it.
             *
             *     - `body-incomplete`: the body ended early
             *     - `body-invalid`: the body must be a JSON object in UTF-8
             *     - `challenge-expired`: invalid challenge: it has expired
             *     - `challenge-invalid`: invalid challenge
             *     - `challenge-used`: invalid challenge: it has been used already
             *     - `transaction-invalid`: transaction is invalid
             *     - `transaction-required`: transaction required
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "body-incomplete" | "body-invalid" | "challenge-expired" | "challenge-invalid" | "challenge-used" | "transaction-invalid" | "transaction-required";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is of another type.
             *
             *     - `unsupported-media`: the body must be application/json
             */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "unsupported-media";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Too soon after the last time.
             *
             *     - `rate-limited`: too many requests from this address
             */
            429: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "rate-limited";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `busy`: the service is busy: try again
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "busy" | "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    getStandardChallenge: {
        parameters: {
            query: {
                account: string;
                /** @description not supported: one that is not empty is refused */
                memo?: string;
                /** @description none, or that of this service */
                home_domain?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The challenge */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "transaction": "AAAAAgAAAADg3G3hclysZlFitS+s5zWyiiJD5B0STWy5LXCj6i5yxQAAAGQ…",
                     *       "network_passphrase": "Test SDF Network ; September 2015"
                     *     }
                     */
                    "application/json": components["schemas"]["Challenge"];
                };
            };
            /**
             * @description A field is missing or malformed; the message names it.
             *
             *     - `account-invalid`: account is invalid
             *     - `account-required`: account required
             *     - `home-domain-invalid`: home-domain is invalid
             *     - `memo-invalid`: memo is invalid
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "account-invalid" | "account-required" | "home-domain-invalid" | "memo-invalid";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Too soon after the last time.
             *
             *     - `rate-limited`: too many requests from this address
             */
            429: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "rate-limited";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-configured";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    signInWithStandard: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "transaction": "AAAAAgAAAADg3G3hclysZlFitS+s5zWyiiJD5B0STWy5LXCj6i5yxQAAAGQ…"
                 *     }
                 */
                "application/json": {
                    /** @description the challenge with the wallet’s signature, base64 XDR */
                    transaction: string;
                };
                /**
                 * @example {
                 *       "transaction": "AAAAAgAAAADg3G3hclysZlFitS+s5zWyiiJD5B0STWy5LXCj6i5yxQAAAGQ…"
                 *     }
                 */
                "application/x-www-form-urlencoded": {
                    /** @description the challenge with the wallet’s signature, base64 XDR */
                    transaction: string;
                };
            };
        };
        responses: {
            /** @description A session of the account */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "token": "eyJhbGciOiJIUzI1NiIsInR5cCI6InNlc3Npb24rand0In0.eyJraW5kIjoibGVkZ2VyIn0.c2lnbmF0dXJl",
                     *       "session": "eyJhbGciOiJIUzI1NiIsInR5cCI6InNlc3Npb24rand0In0.eyJraW5kIjoibGVkZ2VyIn0.c2lnbmF0dXJl",
                     *       "kind": "ledger",
                     *       "sub": "GBTL47RTFR5EKMZSXWOQU735WBK7LRPPDIDK3JTNTCZZ7NUBBRDTVSK2"
                     *     }
                     */
                    "application/json": {
                        /** @description an HS256 JWT: send it as `Authorization: Bearer <session>` */
                        session: string;
                        /**
                         * @description `ledger` after a wallet sign-in, `idp` after one by email
                         * @enum {string}
                         */
                        kind: "ledger" | "idp";
                        /** @description the account address (`ledger`), or the provider’s id of the user (`idp`) */
                        sub: string;
                        /** @description the session, as SEP-10 names it */
                        token: string;
                    };
                };
            };
            /**
             * @description A field is missing or malformed; the message names it.
             *
             *     - `body-incomplete`: the body ended early
             *     - `body-invalid`: the body must be a JSON object in UTF-8
             *     - `challenge-expired`: invalid challenge: it has expired
             *     - `challenge-invalid`: invalid challenge
             *     - `challenge-used`: invalid challenge: it has been used already
             *     - `transaction-invalid`: transaction is invalid
             *     - `transaction-required`: transaction required
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "body-incomplete" | "body-invalid" | "challenge-expired" | "challenge-invalid" | "challenge-used" | "transaction-invalid" | "transaction-required";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is of another type.
             *
             *     - `unsupported-media`: the body must be application/json
             */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "unsupported-media";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Too soon after the last time.
             *
             *     - `rate-limited`: too many requests from this address
             */
            429: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "rate-limited";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `busy`: the service is busy: try again
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "busy" | "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    signInWithProvider: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl"
                 *     }
                 */
                "application/json": {
                    /** @description an access token of the identity provider */
                    token: string;
                };
            };
        };
        responses: {
            /** @description A session of the provider’s user */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "session": "eyJhbGciOiJIUzI1NiIsInR5cCI6InNlc3Npb24rand0In0.eyJraW5kIjoibGVkZ2VyIn0.c2lnbmF0dXJl",
                     *       "kind": "idp",
                     *       "sub": "ada"
                     *     }
                     */
                    "application/json": components["schemas"]["Session"];
                };
            };
            /**
             * @description A field is missing or malformed; the message names it.
             *
             *     - `body-incomplete`: the body ended early
             *     - `body-invalid`: the body must be a JSON object in UTF-8
             *     - `token-invalid`: token is invalid
             *     - `token-required`: token required
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "body-incomplete" | "body-invalid" | "token-invalid" | "token-required";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `identity-token-invalid`: invalid identity token
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "identity-token-invalid";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is of another type.
             *
             *     - `unsupported-media`: the body must be application/json
             */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "unsupported-media";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Too soon after the last time.
             *
             *     - `rate-limited`: too many requests from this address
             */
            429: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "rate-limited";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not done here, or not configured.
             *
             *     - `idp-not-configured`: no identity provider is configured
             */
            501: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "idp-not-configured";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `busy`: the service is busy: try again
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "busy" | "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    sponsorTransfer: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "signedXDR": "AAAAAgAAAABqvH4zLJ5FMzK86cKuG8B3x…",
                 *       "payoutId": "c2a9d2ab-5b0e-4d0f-b5a1-1f0b7a6e3c44"
                 *     }
                 */
                "application/json": {
                    /** @description the signed inner transaction, base64 XDR */
                    signedXDR: string;
                    /** @description the payout that the transfer pays; without it, the service finds one that fits */
                    payoutId?: string;
                };
            };
        };
        responses: {
            /** @description It stands on the ledger */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "hash": "3a7f0e6dbb0b7b0c8f9bfd0e2f1f5c0d9b1a4e7c6d5f8e9a0b1c2d3e4f5a6b7c",
                     *       "status": "SUCCESS"
                     *     }
                     */
                    "application/json": components["schemas"]["TransferResult"];
                };
            };
            /**
             * @description A field is missing or malformed; the message names it.
             *
             *     - `body-incomplete`: the body ended early
             *     - `body-invalid`: the body must be a JSON object in UTF-8
             *     - `payout-id-invalid`: payout-id is invalid
             *     - `signed-xdr-invalid`: signed-xdr is invalid
             *     - `signed-xdr-required`: signed-xdr required
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "body-incomplete" | "body-invalid" | "payout-id-invalid" | "signed-xdr-invalid" | "signed-xdr-required";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `source-mismatch`: transaction source is not your session account
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "source-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is of another type.
             *
             *     - `unsupported-media`: the body must be application/json
             */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "unsupported-media";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The sponsor refuses to pay.
             *
             *     - `another-open`: another transfer of this account is open until <time>
             *     - `arguments`: the arguments are not (from, to, data)
             *     - `auth-count`: more than one authorization entry
             *     - `auth-credentials`: the authorization does not use source-account credentials
             *     - `auth-invocation`: the authorization does not cover exactly this call
             *     - `bad-signature`: a signature does not belong to the account on this network
             *     - `contract`: the contract is not on the allow-list
             *     - `daily-budget`: the daily budget of the sponsor is used up
             *     - `excess-bytes`: the declared bytes exceed what the call needs
             *     - `excess-footprint`: the declared footprint exceeds what the call needs
             *     - `excess-instructions`: the declared instructions exceed what the call needs
             *     - `excess-resource-fee`: the declared resource fee exceeds what the call needs
             *     - `expires-too-late`: maxTime is more than 330 seconds away
             *     - `expires-too-soon`: maxTime is less than 10 seconds away
             *     - `extra-signature`: there are more signatures than needed, and the network rejects them
             *     - `fee-below-resources`: the fee does not cover the resource fee and an inclusion fee of 100 stroops
             *     - `fee-cap`: the fee is above the cap
             *     - `float`: sponsor float exhausted
             *     - `function`: the function is not on the allow-list
             *     - `low-resource-fee`: the declared resource fee is less than the call needs
             *     - `memo`: a memo is not allowed
             *     - `muxed-source`: the source is a muxed account
             *     - `no-account`: the account does not exist
             *     - `no-expiry`: maxTime is missing
             *     - `no-resources`: the transaction carries no Soroban resources
             *     - `not-payer`: the payer in the arguments is not the transaction source
             *     - `not-yet-valid`: minTime is in the future
             *     - `operation-count`: exactly one operation is allowed
             *     - `operation-source`: the operation has a different source than the transaction
             *     - `operation-type`: the operation is not a contract invocation
             *     - `other-recipient`: an open transfer with this sequence number pays another recipient
             *     - `own-address`: the transaction involves an address that the service controls
             *     - `payout`: the payout does not fit the transfer
             *     - `preconditions`: the only precondition allowed is time bounds
             *     - `quota-stroops`: the daily fee quota of this account is used up
             *     - `quota-transfers`: the daily number of transfers of this account is used up
             *     - `resource-fee-cap`: the resource fee is above the cap
             *     - `sequence`: the sequence number is not the next one of the account
             *     - `too-few-resources`: the declared resources are less than the call needs
             *     - `too-little-weight`: the signatures do not reach the medium threshold
             *     - `too-many-envelopes`: three transactions with this sequence number are open already
             *     - `would-fail`: the transaction would fail
             */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "another-open" | "arguments" | "auth-count" | "auth-credentials" | "auth-invocation" | "bad-signature" | "contract" | "daily-budget" | "excess-bytes" | "excess-footprint" | "excess-instructions" | "excess-resource-fee" | "expires-too-late" | "expires-too-soon" | "extra-signature" | "fee-below-resources" | "fee-cap" | "float" | "function" | "low-resource-fee" | "memo" | "muxed-source" | "no-account" | "no-expiry" | "no-resources" | "not-payer" | "not-yet-valid" | "operation-count" | "operation-source" | "operation-type" | "other-recipient" | "own-address" | "payout" | "preconditions" | "quota-stroops" | "quota-transfers" | "resource-fee-cap" | "sequence" | "too-few-resources" | "too-little-weight" | "too-many-envelopes" | "would-fail";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `busy`: the service is busy: try again
             *     - `internal`: internal error
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `transfer-expired`: the transfer was not applied and never will be: build a new one
             *     - `transfer-failed`: the transfer failed on the ledger; `hash` names the transaction
             *     - `transfer-open`: the transfer is not decided yet: send the same `signedXDR` again
             *     - `transfer-refused`: the network rejected the transaction; `reason` is its result code
             *     - `transfer-replaced`: another transaction with the same sequence number was applied; `hash` names it
             *     - `transfer-unknown`: the ledger's history no longer reaches back to the transfer
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "busy" | "internal" | "not-configured" | "transfer-expired" | "transfer-failed" | "transfer-open" | "transfer-refused" | "transfer-replaced" | "transfer-unknown" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not done here, or not configured.
             *
             *     - `sponsor-not-configured`: no fee sponsor is configured
             *     - `wallet-required`: transfers need a wallet session
             */
            501: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "sponsor-not-configured" | "wallet-required";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    listContractors: {
        parameters: {
            query?: {
                /** @description how many at most */
                limit?: number;
                /** @description where to go on: from the Link header of the page before */
                cursor?: string;
                /** @description those in this status */
                status?: "invited" | "onboarding" | "ready" | "inactive";
                /** @description those with this in their name, email or address, in any case */
                q?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Up to 1,000 of them, or as many as `limit` says */
            200: {
                headers: {
                    /** @description The next page, if there is one (RFC 8288) */
                    Link?: string;
                    /** @description How many there are in all, when `limit` is given */
                    "X-Total-Count"?: number;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "contractors": [
                     *         {
                     *           "id": "5f0c7e0a-3c55-4a6e-9d0e-2f6a1f7b8c11",
                     *           "name": "Ada Lovelace",
                     *           "status": "ready",
                     *           "createdAt": "2026-03-02T09:00:00.000Z",
                     *           "email": "ada@example.com",
                     *           "address": "GAFVCOWZWSJEAFOKBEBO2B4QITJ2YXN6YIYG6BUURQINVDVW4OPS3OL6",
                     *           "pvk": "1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f",
                     *           "rate": {
                     *             "amount": "4200.5",
                     *             "currency": "USDC"
                     *           },
                     *           "lastPaidAt": "2026-03-02T09:05:06.000Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        contractors: components["schemas"]["Contractor"][];
                    };
                };
            };
            /**
             * @description A field is missing or malformed; the message names it.
             *
             *     - `cursor-invalid`: cursor is invalid
             *     - `limit-invalid`: limit is invalid
             *     - `q-invalid`: q is invalid
             *     - `status-invalid`: status is invalid
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "cursor-invalid" | "limit-invalid" | "q-invalid" | "status-invalid";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `employer-required`: employer role required
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "employer-required" | "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    createContractor: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Ada Lovelace",
                 *       "email": "ada@example.com",
                 *       "address": "GAFVCOWZWSJEAFOKBEBO2B4QITJ2YXN6YIYG6BUURQINVDVW4OPS3OL6",
                 *       "rate": {
                 *         "amount": "4200.5",
                 *         "currency": "USDC"
                 *       }
                 *     }
                 */
                "application/json": {
                    name: string;
                    email?: string;
                    /** @description ledger address (G… or C…) */
                    address?: string;
                    rate?: {
                        /** @description a positive decimal with at most 7 decimals */
                        amount: string;
                        /** @enum {string} */
                        currency: "USDC";
                    };
                };
            };
        };
        responses: {
            /** @description The contractor */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "5f0c7e0a-3c55-4a6e-9d0e-2f6a1f7b8c11",
                     *       "name": "Ada Lovelace",
                     *       "status": "ready",
                     *       "createdAt": "2026-03-02T09:00:00.000Z",
                     *       "email": "ada@example.com",
                     *       "address": "GAFVCOWZWSJEAFOKBEBO2B4QITJ2YXN6YIYG6BUURQINVDVW4OPS3OL6",
                     *       "pvk": "1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f",
                     *       "rate": {
                     *         "amount": "4200.5",
                     *         "currency": "USDC"
                     *       },
                     *       "lastPaidAt": "2026-03-02T09:05:06.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Contractor"];
                };
            };
            /**
             * @description A field is missing or malformed; the message names it.
             *
             *     - `address-invalid`: address is invalid
             *     - `amount-invalid`: amount is invalid
             *     - `amount-required`: amount required
             *     - `body-incomplete`: the body ended early
             *     - `body-invalid`: the body must be a JSON object in UTF-8
             *     - `currency-invalid`: currency is invalid
             *     - `currency-required`: currency required
             *     - `email-invalid`: email is invalid
             *     - `name-invalid`: name is invalid
             *     - `name-required`: name required
             *     - `rate-invalid`: rate is invalid
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "address-invalid" | "amount-invalid" | "amount-required" | "body-incomplete" | "body-invalid" | "currency-invalid" | "currency-required" | "email-invalid" | "name-invalid" | "name-required" | "rate-invalid";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `employer-required`: employer role required
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "employer-required" | "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It contradicts what is there.
             *
             *     - `address-taken`: another contractor has this address
             *     - `contractors-full`: the organisation has as many contractors as it may have
             *     - `email-taken`: another contractor has this email
             *     - `organisation-dissolved`: your organisation no longer exists: sign in again
             */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "address-taken" | "contractors-full" | "email-taken" | "organisation-dissolved";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is of another type.
             *
             *     - `unsupported-media`: the body must be application/json
             */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "unsupported-media";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `busy`: the service is busy: try again
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "busy" | "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    importContractors: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "rows": [
                 *         {
                 *           "name": "Ada Lovelace",
                 *           "email": "ada@example.com",
                 *           "address": "GAFVCOWZWSJEAFOKBEBO2B4QITJ2YXN6YIYG6BUURQINVDVW4OPS3OL6",
                 *           "amount": 4200.5
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": {
                    rows: {
                        name: string;
                        email?: string;
                        /** @description ledger address (G… or C…) */
                        address?: string;
                        amount?: number | string;
                    }[];
                };
            };
        };
        responses: {
            /** @description Who was imported, and which rows (from 1) were not */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "imported": [
                     *         {
                     *           "id": "5f0c7e0a-3c55-4a6e-9d0e-2f6a1f7b8c11",
                     *           "name": "Ada Lovelace",
                     *           "status": "ready",
                     *           "createdAt": "2026-03-02T09:00:00.000Z",
                     *           "email": "ada@example.com",
                     *           "address": "GAFVCOWZWSJEAFOKBEBO2B4QITJ2YXN6YIYG6BUURQINVDVW4OPS3OL6",
                     *           "pvk": "1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f",
                     *           "rate": {
                     *             "amount": "4200.5",
                     *             "currency": "USDC"
                     *           },
                     *           "lastPaidAt": "2026-03-02T09:05:06.000Z"
                     *         }
                     *       ],
                     *       "errors": [
                     *         {
                     *           "row": 2,
                     *           "reason": "name required"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        imported: components["schemas"]["Contractor"][];
                        errors: {
                            row: number;
                            reason: string;
                        }[];
                    };
                };
            };
            /**
             * @description A field is missing or malformed; the message names it.
             *
             *     - `body-incomplete`: the body ended early
             *     - `body-invalid`: the body must be a JSON object in UTF-8
             *     - `rows-invalid`: rows is invalid
             *     - `rows-required`: rows required
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "body-incomplete" | "body-invalid" | "rows-invalid" | "rows-required";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `employer-required`: employer role required
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "employer-required" | "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It contradicts what is there.
             *
             *     - `organisation-dissolved`: your organisation no longer exists: sign in again
             */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "organisation-dissolved";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is of another type.
             *
             *     - `unsupported-media`: the body must be application/json
             */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "unsupported-media";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `busy`: the service is busy: try again
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "busy" | "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    getContractor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description id of the contractor */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The contractor */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "5f0c7e0a-3c55-4a6e-9d0e-2f6a1f7b8c11",
                     *       "name": "Ada Lovelace",
                     *       "status": "ready",
                     *       "createdAt": "2026-03-02T09:00:00.000Z",
                     *       "email": "ada@example.com",
                     *       "address": "GAFVCOWZWSJEAFOKBEBO2B4QITJ2YXN6YIYG6BUURQINVDVW4OPS3OL6",
                     *       "pvk": "1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f",
                     *       "rate": {
                     *         "amount": "4200.5",
                     *         "currency": "USDC"
                     *       },
                     *       "lastPaidAt": "2026-03-02T09:05:06.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Contractor"];
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `employer-required`: employer role required
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "employer-required" | "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It does not exist, or belongs to another organisation.
             *
             *     - `contractor-not-found`: contractor not found
             */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "contractor-not-found";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    removeContractor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description id of the contractor */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "5f0c7e0a-3c55-4a6e-9d0e-2f6a1f7b8c11"
                     *     }
                     */
                    "application/json": {
                        id: string;
                    };
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `employer-required`: employer role required
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "employer-required" | "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It does not exist, or belongs to another organisation.
             *
             *     - `contractor-not-found`: contractor not found
             */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "contractor-not-found";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    changeContractor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description id of the contractor */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "name": "Ada Lovelace",
                 *       "email": "ada@example.com",
                 *       "address": "GAFVCOWZWSJEAFOKBEBO2B4QITJ2YXN6YIYG6BUURQINVDVW4OPS3OL6",
                 *       "rate": {
                 *         "amount": "4200.5",
                 *         "currency": "USDC"
                 *       },
                 *       "status": "inactive"
                 *     }
                 */
                "application/json": {
                    name?: string;
                    email?: string | null;
                    address?: string | null;
                    rate?: {
                        /** @description a positive decimal with at most 7 decimals */
                        amount: string;
                        /** @enum {string} */
                        currency: "USDC";
                    } | null;
                    /** @enum {string} */
                    status?: "invited" | "onboarding" | "ready" | "inactive";
                };
            };
        };
        responses: {
            /** @description The contractor as it is now */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "5f0c7e0a-3c55-4a6e-9d0e-2f6a1f7b8c11",
                     *       "name": "Ada Lovelace",
                     *       "status": "inactive",
                     *       "createdAt": "2026-03-02T09:00:00.000Z",
                     *       "email": "ada@example.com",
                     *       "address": "GAFVCOWZWSJEAFOKBEBO2B4QITJ2YXN6YIYG6BUURQINVDVW4OPS3OL6",
                     *       "pvk": "1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f",
                     *       "rate": {
                     *         "amount": "4200.5",
                     *         "currency": "USDC"
                     *       },
                     *       "lastPaidAt": "2026-03-02T09:05:06.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Contractor"];
                };
            };
            /**
             * @description A field is missing or malformed; the message names it.
             *
             *     - `address-invalid`: address is invalid
             *     - `amount-invalid`: amount is invalid
             *     - `amount-required`: amount required
             *     - `body-incomplete`: the body ended early
             *     - `body-invalid`: the body must be a JSON object in UTF-8
             *     - `currency-invalid`: currency is invalid
             *     - `currency-required`: currency required
             *     - `email-invalid`: email is invalid
             *     - `name-invalid`: name is invalid
             *     - `name-required`: name required
             *     - `rate-invalid`: rate is invalid
             *     - `status-invalid`: status is invalid
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "address-invalid" | "amount-invalid" | "amount-required" | "body-incomplete" | "body-invalid" | "currency-invalid" | "currency-required" | "email-invalid" | "name-invalid" | "name-required" | "rate-invalid" | "status-invalid";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `account-unproven`: sign in with that account first
             *     - `employer-required`: employer role required
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "account-unproven" | "employer-required" | "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It does not exist, or belongs to another organisation.
             *
             *     - `contractor-not-found`: contractor not found
             */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "contractor-not-found";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It contradicts what is there.
             *
             *     - `address-taken`: another contractor has this address
             *     - `email-taken`: another contractor has this email
             */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "address-taken" | "email-taken";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is of another type.
             *
             *     - `unsupported-media`: the body must be application/json
             */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "unsupported-media";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `busy`: the service is busy: try again
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "busy" | "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    inviteContractor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description id of the contractor */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The link */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "inviteUrl": "https://pay.example/invite/Xwx-CjxVSm6dDi9qH3uMEQAAAAGenp6enp6enp6enp6enp6enp6enp6enp6enp6enp6eng"
                     *     }
                     */
                    "application/json": {
                        inviteUrl: string;
                    };
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `employer-required`: employer role required
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "employer-required" | "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It does not exist, or belongs to another organisation.
             *
             *     - `contractor-not-found`: contractor not found
             */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "contractor-not-found";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It contradicts what is there.
             *
             *     - `contractor-accepted`: contractor has accepted already
             *     - `contractor-inactive`: contractor is inactive
             */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "contractor-accepted" | "contractor-inactive";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Too soon after the last time.
             *
             *     - `invite-limit`: the organisation has mailed as many invites today as it may
             */
            429: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "invite-limit";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `mail-unavailable`: the mail could not be sent
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "mail-unavailable" | "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    acceptInvite: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the last part of the link */
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The caller’s contractor record */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "5f0c7e0a-3c55-4a6e-9d0e-2f6a1f7b8c11",
                     *       "name": "Ada Lovelace",
                     *       "status": "ready",
                     *       "createdAt": "2026-03-02T09:00:00.000Z",
                     *       "email": "ada@example.com",
                     *       "address": "GAFVCOWZWSJEAFOKBEBO2B4QITJ2YXN6YIYG6BUURQINVDVW4OPS3OL6",
                     *       "pvk": "1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f",
                     *       "rate": {
                     *         "amount": "4200.5",
                     *         "currency": "USDC"
                     *       },
                     *       "lastPaidAt": "2026-03-02T09:05:06.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Contractor"];
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `invite-for-other`: this invite is for another email or account
             *     - `own-invite`: this invite is from your own organisation
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "invite-for-other" | "own-invite" | "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It does not exist, or belongs to another organisation.
             *
             *     - `invite-not-found`: invite not found
             */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "invite-not-found";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It contradicts what is there.
             *
             *     - `address-taken`: another contractor has this address
             *     - `invite-accepted`: invite accepted already
             */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "address-taken" | "invite-accepted";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    listBatches: {
        parameters: {
            query?: {
                /** @description how many at most */
                limit?: number;
                /** @description where to go on: from the Link header of the page before */
                cursor?: string;
                /** @description those in this status */
                status?: "draft" | "ready" | "started" | "completed" | "failed";
                /** @description those with this in their name, in any case */
                q?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Up to 1,000 of them, or as many as `limit` says */
            200: {
                headers: {
                    /** @description The next page, if there is one (RFC 8288) */
                    Link?: string;
                    /** @description How many there are in all, when `limit` is given */
                    "X-Total-Count"?: number;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "batches": [
                     *         {
                     *           "id": "0d9b5c52-7f2e-4b6b-8a52-8c1f3a9e7d20",
                     *           "name": "March 2026",
                     *           "status": "completed",
                     *           "payoutCount": 1,
                     *           "settledCount": 1,
                     *           "failedCount": 0,
                     *           "createdAt": "2026-03-02T09:00:00.000Z",
                     *           "startedAt": "2026-03-02T09:05:00.000Z",
                     *           "completedAt": "2026-03-02T09:05:06.000Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        batches: components["schemas"]["Batch"][];
                    };
                };
            };
            /**
             * @description A field is missing or malformed; the message names it.
             *
             *     - `cursor-invalid`: cursor is invalid
             *     - `limit-invalid`: limit is invalid
             *     - `q-invalid`: q is invalid
             *     - `status-invalid`: status is invalid
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "cursor-invalid" | "limit-invalid" | "q-invalid" | "status-invalid";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `employer-required`: employer role required
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "employer-required" | "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    createBatch: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "March 2026"
                 *     }
                 */
                "application/json": {
                    name: string;
                };
            };
        };
        responses: {
            /** @description The batch, a draft with nothing in it */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0d9b5c52-7f2e-4b6b-8a52-8c1f3a9e7d20",
                     *       "name": "March 2026",
                     *       "status": "draft",
                     *       "payoutCount": 1,
                     *       "settledCount": 0,
                     *       "failedCount": 0,
                     *       "createdAt": "2026-03-02T09:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Batch"];
                };
            };
            /**
             * @description A field is missing or malformed; the message names it.
             *
             *     - `body-incomplete`: the body ended early
             *     - `body-invalid`: the body must be a JSON object in UTF-8
             *     - `name-invalid`: name is invalid
             *     - `name-required`: name required
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "body-incomplete" | "body-invalid" | "name-invalid" | "name-required";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `employer-required`: employer role required
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "employer-required" | "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It contradicts what is there.
             *
             *     - `organisation-dissolved`: your organisation no longer exists: sign in again
             */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "organisation-dissolved";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is of another type.
             *
             *     - `unsupported-media`: the body must be application/json
             */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "unsupported-media";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `busy`: the service is busy: try again
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "busy" | "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    getBatch: {
        parameters: {
            query?: {
                /** @description how many at most */
                limit?: number;
                /** @description where to go on: from the Link header of the page before */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description id of the batch */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The batch with up to 1,000 of its payouts, or as many as `limit` says */
            200: {
                headers: {
                    /** @description The next page, if there is one (RFC 8288) */
                    Link?: string;
                    /** @description How many there are in all, when `limit` is given */
                    "X-Total-Count"?: number;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0d9b5c52-7f2e-4b6b-8a52-8c1f3a9e7d20",
                     *       "name": "March 2026",
                     *       "status": "completed",
                     *       "payoutCount": 1,
                     *       "settledCount": 1,
                     *       "failedCount": 0,
                     *       "createdAt": "2026-03-02T09:00:00.000Z",
                     *       "startedAt": "2026-03-02T09:05:00.000Z",
                     *       "completedAt": "2026-03-02T09:05:06.000Z",
                     *       "payouts": [
                     *         {
                     *           "id": "c2a9d2ab-5b0e-4d0f-b5a1-1f0b7a6e3c44",
                     *           "batchId": "0d9b5c52-7f2e-4b6b-8a52-8c1f3a9e7d20",
                     *           "contractorId": "5f0c7e0a-3c55-4a6e-9d0e-2f6a1f7b8c11",
                     *           "status": "paid",
                     *           "createdAt": "2026-03-02T09:00:00.000Z",
                     *           "address": "GAFVCOWZWSJEAFOKBEBO2B4QITJ2YXN6YIYG6BUURQINVDVW4OPS3OL6",
                     *           "txHash": "3a7f0e6dbb0b7b0c8f9bfd0e2f1f5c0d9b1a4e7c6d5f8e9a0b1c2d3e4f5a6b7c",
                     *           "encryptedAmount": "b3BhcXVlIHRvIHRoZSBzZXJ2aWNl",
                     *           "paidAt": "2026-03-02T09:05:06.000Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        id: string;
                        name: string;
                        /** @enum {string} */
                        status: "draft" | "ready" | "started" | "completed" | "failed";
                        /** @description payouts that are not canceled */
                        payoutCount: number;
                        /** @description those of them that are paid */
                        settledCount: number;
                        /** @description those of them that failed; they can be sent again */
                        failedCount: number;
                        /** Format: date-time */
                        createdAt: string;
                        /** Format: date-time */
                        startedAt?: string;
                        /** Format: date-time */
                        completedAt?: string;
                        payouts: components["schemas"]["Payout"][];
                    };
                };
            };
            /**
             * @description A field is missing or malformed; the message names it.
             *
             *     - `cursor-invalid`: cursor is invalid
             *     - `limit-invalid`: limit is invalid
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "cursor-invalid" | "limit-invalid";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `employer-required`: employer role required
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "employer-required" | "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It does not exist, or belongs to another organisation.
             *
             *     - `batch-not-found`: batch not found
             */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "batch-not-found";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    removeBatch: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description id of the batch */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0d9b5c52-7f2e-4b6b-8a52-8c1f3a9e7d20"
                     *     }
                     */
                    "application/json": {
                        id: string;
                    };
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `employer-required`: employer role required
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "employer-required" | "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It does not exist, or belongs to another organisation.
             *
             *     - `batch-not-found`: batch not found
             */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "batch-not-found";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It contradicts what is there.
             *
             *     - `batch-sent`: a payout of this batch has been sent
             */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "batch-sent";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    instructBatch: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description id of the batch */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "instructions": [
                 *         {
                 *           "contractorId": "5f0c7e0a-3c55-4a6e-9d0e-2f6a1f7b8c11",
                 *           "encryptedAmount": "b3BhcXVlIHRvIHRoZSBzZXJ2aWNl"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": {
                    instructions: {
                        contractorId: string;
                        /** @description opaque to the service, 1 to 4096 characters; without a good one the row is an error */
                        encryptedAmount?: string;
                    }[];
                };
            };
        };
        responses: {
            /** @description The payouts, and the instructions that became none */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "payouts": [
                     *         {
                     *           "id": "c2a9d2ab-5b0e-4d0f-b5a1-1f0b7a6e3c44",
                     *           "batchId": "0d9b5c52-7f2e-4b6b-8a52-8c1f3a9e7d20",
                     *           "contractorId": "5f0c7e0a-3c55-4a6e-9d0e-2f6a1f7b8c11",
                     *           "status": "draft",
                     *           "createdAt": "2026-03-02T09:00:00.000Z",
                     *           "address": "GAFVCOWZWSJEAFOKBEBO2B4QITJ2YXN6YIYG6BUURQINVDVW4OPS3OL6",
                     *           "encryptedAmount": "b3BhcXVlIHRvIHRoZSBzZXJ2aWNl"
                     *         }
                     *       ],
                     *       "errors": [
                     *         {
                     *           "contractorId": "c2a9d2ab-5b0e-4d0f-b5a1-1f0b7a6e3c44",
                     *           "reason": "contractor not found"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        payouts: components["schemas"]["Payout"][];
                        errors: {
                            contractorId: string;
                            /** @enum {string} */
                            reason: "contractor not found" | "contractor is not ready" | "contractor already in this batch" | "encryptedAmount required" | "encryptedAmount must have at most 4096 characters" | "encryptedAmount must not hold control characters" | "encryptedAmount must not hold a secret seed";
                        }[];
                    };
                };
            };
            /**
             * @description A field is missing or malformed; the message names it.
             *
             *     - `body-incomplete`: the body ended early
             *     - `body-invalid`: the body must be a JSON object in UTF-8
             *     - `contractor-id-invalid`: contractor-id is invalid
             *     - `contractor-id-required`: contractor-id required
             *     - `instructions-invalid`: instructions is invalid
             *     - `instructions-required`: instructions required
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "body-incomplete" | "body-invalid" | "contractor-id-invalid" | "contractor-id-required" | "instructions-invalid" | "instructions-required";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `employer-required`: employer role required
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "employer-required" | "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It does not exist, or belongs to another organisation.
             *
             *     - `batch-not-found`: batch not found
             */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "batch-not-found";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It contradicts what is there.
             *
             *     - `batch-locked`: batch is locked
             */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "batch-locked";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is of another type.
             *
             *     - `unsupported-media`: the body must be application/json
             */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "unsupported-media";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `busy`: the service is busy: try again
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "busy" | "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    lockBatch: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description id of the batch */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The batch */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0d9b5c52-7f2e-4b6b-8a52-8c1f3a9e7d20",
                     *       "name": "March 2026",
                     *       "status": "ready",
                     *       "payoutCount": 1,
                     *       "settledCount": 0,
                     *       "failedCount": 0,
                     *       "createdAt": "2026-03-02T09:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Batch"];
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `employer-required`: employer role required
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "employer-required" | "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It does not exist, or belongs to another organisation.
             *
             *     - `batch-not-found`: batch not found
             */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "batch-not-found";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It contradicts what is there.
             *
             *     - `batch-locked`: batch is locked
             */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "batch-locked";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    getBatchProgress: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description id of the batch */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its status and counters */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "started",
                     *       "settledCount": 0,
                     *       "failedCount": 0,
                     *       "payoutCount": 1
                     *     }
                     */
                    "application/json": components["schemas"]["BatchProgress"];
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `employer-required`: employer role required
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "employer-required" | "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It does not exist, or belongs to another organisation.
             *
             *     - `batch-not-found`: batch not found
             */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "batch-not-found";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    listPayouts: {
        parameters: {
            query?: {
                /** @description how many at most */
                limit?: number;
                /** @description where to go on: from the Link header of the page before */
                cursor?: string;
                /** @description those of this batch */
                batchId?: string;
                /** @description those of this contractor */
                contractorId?: string;
                /** @description those in this status */
                status?: "draft" | "ready" | "pending" | "paid" | "failed" | "canceled";
                /** @description those made at this moment or later */
                from?: string;
                /** @description those made before this moment */
                to?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Up to 1,000 of them, or as many as `limit` says */
            200: {
                headers: {
                    /** @description The next page, if there is one (RFC 8288) */
                    Link?: string;
                    /** @description How many there are in all, when `limit` is given */
                    "X-Total-Count"?: number;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "payouts": [
                     *         {
                     *           "id": "c2a9d2ab-5b0e-4d0f-b5a1-1f0b7a6e3c44",
                     *           "batchId": "0d9b5c52-7f2e-4b6b-8a52-8c1f3a9e7d20",
                     *           "contractorId": "5f0c7e0a-3c55-4a6e-9d0e-2f6a1f7b8c11",
                     *           "status": "paid",
                     *           "createdAt": "2026-03-02T09:00:00.000Z",
                     *           "address": "GAFVCOWZWSJEAFOKBEBO2B4QITJ2YXN6YIYG6BUURQINVDVW4OPS3OL6",
                     *           "txHash": "3a7f0e6dbb0b7b0c8f9bfd0e2f1f5c0d9b1a4e7c6d5f8e9a0b1c2d3e4f5a6b7c",
                     *           "encryptedAmount": "b3BhcXVlIHRvIHRoZSBzZXJ2aWNl",
                     *           "paidAt": "2026-03-02T09:05:06.000Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        payouts: components["schemas"]["Payout"][];
                    };
                };
            };
            /**
             * @description A field is missing or malformed; the message names it.
             *
             *     - `cursor-invalid`: cursor is invalid
             *     - `from-invalid`: from is invalid
             *     - `limit-invalid`: limit is invalid
             *     - `status-invalid`: status is invalid
             *     - `to-invalid`: to is invalid
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "cursor-invalid" | "from-invalid" | "limit-invalid" | "status-invalid" | "to-invalid";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    cancelPayout: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description id of the payout */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is canceled */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "c2a9d2ab-5b0e-4d0f-b5a1-1f0b7a6e3c44"
                     *     }
                     */
                    "application/json": {
                        id: string;
                    };
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `employer-required`: employer role required
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "employer-required" | "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It does not exist, or belongs to another organisation.
             *
             *     - `payout-not-found`: payout not found
             */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "payout-not-found";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It contradicts what is there.
             *
             *     - `payout-sent`: the payout is pending, paid or canceled
             */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "payout-sent";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    getMe: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description You */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "sub": "GBTL47RTFR5EKMZSXWOQU735WBK7LRPPDIDK3JTNTCZZ7NUBBRDTVSK2",
                     *       "kind": "ledger",
                     *       "roles": [
                     *         "employer"
                     *       ],
                     *       "needsOnboarding": false,
                     *       "employer": {
                     *         "orgId": "9e3b1d77-26a4-4e0f-9a61-0b2c4d8f5a66",
                     *         "orgName": "Analytical Engines"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Me"];
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    nameOrganisation: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "orgName": "Analytical Engines"
                 *     }
                 */
                "application/json": {
                    orgName: string;
                };
            };
        };
        responses: {
            /** @description You */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "sub": "GBTL47RTFR5EKMZSXWOQU735WBK7LRPPDIDK3JTNTCZZ7NUBBRDTVSK2",
                     *       "kind": "ledger",
                     *       "roles": [
                     *         "employer"
                     *       ],
                     *       "needsOnboarding": false,
                     *       "employer": {
                     *         "orgId": "9e3b1d77-26a4-4e0f-9a61-0b2c4d8f5a66",
                     *         "orgName": "Analytical Engines"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Me"];
                };
            };
            /**
             * @description A field is missing or malformed; the message names it.
             *
             *     - `body-incomplete`: the body ended early
             *     - `body-invalid`: the body must be a JSON object in UTF-8
             *     - `org-name-invalid`: org-name is invalid
             *     - `org-name-required`: org-name required
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "body-incomplete" | "body-invalid" | "org-name-invalid" | "org-name-required";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is of another type.
             *
             *     - `unsupported-media`: the body must be application/json
             */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "unsupported-media";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `busy`: the service is busy: try again
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "busy" | "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    joinIdentity: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "session": "eyJhbGciOiJIUzI1NiIsInR5cCI6InNlc3Npb24rand0In0.eyJraW5kIjoibGVkZ2VyIn0.c2lnbmF0dXJl"
                 *     }
                 */
                "application/json": {
                    /** @description a session of the same person’s other identity */
                    session: string;
                };
            };
        };
        responses: {
            /** @description You */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "sub": "GBTL47RTFR5EKMZSXWOQU735WBK7LRPPDIDK3JTNTCZZ7NUBBRDTVSK2",
                     *       "kind": "ledger",
                     *       "roles": [
                     *         "employer"
                     *       ],
                     *       "needsOnboarding": false,
                     *       "employer": {
                     *         "orgId": "9e3b1d77-26a4-4e0f-9a61-0b2c4d8f5a66",
                     *         "orgName": "Analytical Engines"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Me"];
                };
            };
            /**
             * @description A field is missing or malformed; the message names it.
             *
             *     - `body-incomplete`: the body ended early
             *     - `body-invalid`: the body must be a JSON object in UTF-8
             *     - `session-invalid`: session is invalid
             *     - `session-required`: session required
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "body-incomplete" | "body-invalid" | "session-invalid" | "session-required";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `employer-required`: employer role required
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "employer-required" | "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It contradicts what is there.
             *
             *     - `organisation-in-use`: the other session's organisation has records
             */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "organisation-in-use";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is of another type.
             *
             *     - `unsupported-media`: the body must be application/json
             */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "unsupported-media";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `busy`: the service is busy: try again
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "busy" | "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    getVault: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The vault, and what it holds */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "vault": "CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC",
                     *       "held": "125000.0000000"
                     *     }
                     */
                    "application/json": {
                        /** @description the address (G… or C…) whose balance backs the confidential ones */
                        vault: string;
                        /** @description what it holds of the asset, with seven decimals */
                        held: string;
                    };
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not done here, or not configured.
             *
             *     - `not-wired`: the service does not perform this operation
             *     - `vault-not-configured`: no bridge vault is configured
             */
            501: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-wired" | "vault-not-configured";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    fund: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The deposit stands on the ledger */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "hash": "3a7f0e6dbb0b7b0c8f9bfd0e2f1f5c0d9b1a4e7c6d5f8e9a0b1c2d3e4f5a6b7c"
                     *     }
                     */
                    "application/json": {
                        /** @description hash of the deposit on the ledger, 64 hex digits */
                        hash: string;
                    };
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It contradicts what is there.
             *
             *     - `account-missing`: no ledger account
             *     - `account-unregistered`: the account is not registered with the confidential token
             */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "account-missing" | "account-unregistered";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Too soon after the last time.
             *
             *     - `faucet-cooldown`: the account was funded recently
             */
            429: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "faucet-cooldown";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `deposit-failed`: the deposit failed: nothing was granted
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "deposit-failed" | "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not done here, or not configured.
             *
             *     - `faucet-not-configured`: no faucet is configured
             *     - `not-wired`: the service does not perform this operation
             */
            501: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "faucet-not-configured" | "not-wired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `deposit-open`: it is not known yet whether the deposit was applied
             *     - `faucet-busy`: the faucet is busy: nothing was granted
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "deposit-open" | "faucet-busy" | "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    startJob: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "amounts": [
                 *         10000000,
                 *         25000000
                 *       ]
                 *     }
                 */
                "application/json": {
                    /**
                     * @description base units of each transfer
                     * @default [
                     *       10000000,
                     *       20000000,
                     *       30000000
                     *     ]
                     */
                    amounts?: number[];
                };
            };
        };
        responses: {
            /** @description The job has begun */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "jobId": "7a1e2f0c-0a43-4ac1-8f0e-6d5b1c9e2f33",
                     *       "status": "running"
                     *     }
                     */
                    "application/json": {
                        jobId: string;
                        /** @constant */
                        status: "running";
                    };
                };
            };
            /**
             * @description A field is missing or malformed; the message names it.
             *
             *     - `amounts-invalid`: amounts is invalid
             *     - `body-incomplete`: the body ended early
             *     - `body-invalid`: the body must be a JSON object in UTF-8
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "amounts-invalid" | "body-incomplete" | "body-invalid";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not for this caller.
             *
             *     - `provider-mismatch`: this user belongs to another identity provider
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "provider-mismatch";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It contradicts what is there.
             *
             *     - `job-running`: a batch job is running already
             */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "job-running";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is of another type.
             *
             *     - `unsupported-media`: the body must be application/json
             */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "unsupported-media";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not done here, or not configured.
             *
             *     - `batch-disabled`: batch execution is disabled
             */
            501: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "batch-disabled";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `busy`: the service is busy: try again
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "busy" | "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    getJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description from the answer that began it */
                jobId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The job */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "jobId": "7a1e2f0c-0a43-4ac1-8f0e-6d5b1c9e2f33",
                     *       "status": "running",
                     *       "createdAt": 1772442300000,
                     *       "results": [
                     *         {
                     *           "i": 0,
                     *           "hash": "3a7f0e6dbb0b7b0c8f9bfd0e2f1f5c0d9b1a4e7c6d5f8e9a0b1c2d3e4f5a6b7c",
                     *           "status": "SUCCESS"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["BatchJob"];
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description It does not exist, or belongs to another organisation.
             *
             *     - `job-not-found`: unknown job
             */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "job-not-found";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             *     - `unavailable`: the database, the ledger or the identity provider cannot be reached: try again
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-configured" | "unavailable";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    withdraw: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not done here, or not configured.
             *
             *     - `not-wired`: the service does not perform this operation
             */
            501: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-wired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-configured";
                    } & components["schemas"]["Refusal"];
                };
            };
            /** @description Every answer is a refusal */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Refusal"];
                };
            };
        };
    };
    disclose: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             *     - `session-expired`: session expired
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing" | "session-expired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not done here, or not configured.
             *
             *     - `not-wired`: the service does not perform this operation
             */
            501: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-wired";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-configured";
                    } & components["schemas"]["Refusal"];
                };
            };
            /** @description Every answer is a refusal */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Refusal"];
                };
            };
        };
    };
    getHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is up */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ok": true,
                     *       "network": "testnet",
                     *       "idp": true,
                     *       "relay": true,
                     *       "sponsor": true
                     *     }
                     */
                    "application/json": components["schemas"]["Health"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-configured";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    getReadiness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All is well */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ok": true,
                     *       "database": {
                     *         "ok": true
                     *       },
                     *       "ledger": {
                     *         "ok": true,
                     *         "latestLedger": 1204331,
                     *         "age": 3
                     *       },
                     *       "sponsor": {
                     *         "ok": true,
                     *         "address": "GBTL47RTFR5EKMZSXWOQU735WBK7LRPPDIDK3JTNTCZZ7NUBBRDTVSK2",
                     *         "availableXlm": "9998.1234500"
                     *       },
                     *       "relay": {
                     *         "ok": true,
                     *         "channels": 3
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Readiness"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something is not there.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ok": false,
                     *       "database": {
                     *         "ok": true
                     *       },
                     *       "ledger": {
                     *         "ok": false,
                     *         "problem": "the ledger cannot be reached"
                     *       },
                     *       "sponsor": {
                     *         "ok": true,
                     *         "address": "GBTL47RTFR5EKMZSXWOQU735WBK7LRPPDIDK3JTNTCZZ7NUBBRDTVSK2",
                     *         "availableXlm": "9998.1234500"
                     *       },
                     *       "relay": {
                     *         "ok": true,
                     *         "channels": 3
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Readiness"] | ({
                        /** @description what went wrong, for people */
                        error: string;
                        /** @enum {string} */
                        code: "not-configured";
                        /** @description every bad field, if there are several */
                        fields?: {
                            path: string;
                            message: string;
                        }[];
                        /** @description how many more fields are bad: `fields` lists at most 100 */
                        fieldsOmitted?: number;
                    } & {
                        [key: string]: unknown;
                    });
                };
            };
        };
    };
    getMetrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Prometheus text format 0.0.4 */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example # HELP payroll_transfers_total Sponsored transfers whose outcome is known, by outcome.
                     *     # TYPE payroll_transfers_total counter
                     *     payroll_transfers_total{status="succeeded"} 128
                     *     # HELP payroll_http_requests_total Requests to the interface, by method, route and status, of this process.
                     *     # TYPE payroll_http_requests_total counter
                     *     payroll_http_requests_total{method="POST",route="/transfer",status="200"} 128
                     */
                    "text/plain; version=0.0.4; charset=utf-8": string;
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not done here, or not configured.
             *
             *     - `metrics-not-configured`: metrics are not configured
             */
            501: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "metrics-not-configured";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-configured";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    sweep: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What there was to do */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "transfers": 0,
                     *       "envelopes": 0,
                     *       "contractors": 2,
                     *       "items": 0,
                     *       "challenges": 14,
                     *       "refusals": 3,
                     *       "tables": 0
                     *     }
                     */
                    "application/json": {
                        /** @description open transfers that were looked up; null if that chore failed */
                        transfers: number | null;
                        /** @description signed envelopes of long ended transfers that were erased; null if that chore failed */
                        envelopes: number | null;
                        /** @description contractors that became ready; null if that chore failed */
                        contractors: number | null;
                        /** @description items of jobs that are open; each has a message for the relays; null if that chore failed */
                        items: number | null;
                        /** @description used challenges that were forgotten; null if that chore failed */
                        challenges: number | null;
                        /** @description counts of refusals that were forgotten after 30 days; null if that chore failed */
                        refusals: number | null;
                        /** @description tables of the embedded database that were analyzed; null if that chore failed */
                        tables: number | null;
                    };
                };
            };
            /**
             * @description The bearer token is missing, has expired or is not one of this service.
             *
             *     - `bearer-invalid`: invalid session token
             *     - `bearer-missing`: missing bearer token
             */
            401: {
                headers: {
                    /** @description How to authenticate */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "bearer-invalid" | "bearer-missing";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Not done here, or not configured.
             *
             *     - `cron-not-configured`: no CRON_SECRET is configured
             */
            501: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "cron-not-configured";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-configured";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
    getDocument: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OpenAPI 3.1 */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "openapi": "3.1.0",
                     *       "info": {
                     *         "title": "Confidential payroll",
                     *         "version": "1.0.0"
                     *       }
                     *     }
                     */
                    "application/json": {
                        openapi: string;
                        info: {
                            version: string;
                        } & {
                            [key: string]: unknown;
                        };
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /**
             * @description The body is larger than 256 KiB.
             *
             *     - `too-large`: the body is larger than 256 KiB
             */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "too-large";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something failed.
             *
             *     - `internal`: internal error
             */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "internal";
                    } & components["schemas"]["Refusal"];
                };
            };
            /**
             * @description Something that the service needs cannot be reached, or is not well.
             *
             *     - `not-configured`: the service is not configured; `missing` lists the variables that a payroll needs
             */
            503: {
                headers: {
                    /** @description Seconds */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        code?: "not-configured";
                    } & components["schemas"]["Refusal"];
                };
            };
        };
    };
}
