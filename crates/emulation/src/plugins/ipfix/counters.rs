//! Counters of clients that export, and of each way that they do it. Names and units are the reference's.

crate::counters! {
    /// Counters of a client.
    pub(super) struct IpfixCounters: u64, "ipfix" {
        tx_templates: "pktTempSent", "Template packets sent.", "pkts", Info;
        tx_data: "pktDataSent", "Data packets sent.", "pkts", Info;
        template_records: "recordsTempSent", "Template records sent.", "records", Info;
        data_records: "recordsDataSent", "Data records sent.", "records", Info;
        template_records_max: "maxTempRecordsToSend", "Max num of temp records to send (0 - no limit).", "records", Info;
        data_records_max: "maxDataRecordsToSend", "Max num of data records to send (0 - no limit).", "records", Info;
        template_too_long: "templatePktLongerThanMTU", "Template packet of a generator is longer than MTU.", "pkts", Info;
        records_missed: "recordsMtuMissErr", "Record left out because of low MTU value.", "pkts", Error;
        data_length: "dataIncorrectLength", "Field data of invalid length.", "ops", Error;
        exporter_failed: "failedCreatingExporter", "Failure creating a new exporter based on init JSON.", "ops", Error;
        exporter_mode: "failedCreatingExporterWrongKernelMode", "Failure creating a new exporter since kernel mode is wrong.", "ops", Error;
        write_error: "exporterWriteError", "Error writing to exporter.", "ops", Error;
        paused: "genPausedSkipWrite", "Num of write skips when generator is paused to avoid exporter blocking.", "ops", Info;
        invalid_json: "invalidJson", "JSON could not be unmarshalled or validated correctly.", "ops", Error;
        generator_failed: "failedCreatingGen", "Failed creating a new generator from the given JSON.", "ops", Error;
        invalid_destination: "invalidDst", "Invalid destination provided.", "ops", Error;
        enterprise_v9: "enterpriseFieldv9", "Enterpise fields not supported in Netflow v9.", "ops", Error;
        variable_v9: "variableLengthFieldv9", "Variable length fields not supported in Netflow v9.", "ops", Error;
        variable_no_engine: "variableLengthNoEngine", "Variable length field without engine provided.", "ops", Error;
        bad_init_json: "badOrNoInitJson", "Init JSON was either not provided or invalid.", "ops", Error;
        duplicate_name: "duplicateGenName", "Generator with the same name already registered.", "ops", Error;
        duplicate_template: "duplicateTemplateID", "Duplicate template ID. Can't have 2 generators with the same template ID.", "ops", Error;
        invalid_template: "invalidTemplateID", "Invalid template ID. Template ID must be bigger than 255.", "ops", Error;
        engines_failed: "failedBuildingEngineMgr", "Failed building engine manager with the provided JSON.", "ops", Error;
        invalid_engine: "invalidEngineName", "Invalid engine name. Engine name must be a field name.", "ops", Error;
        invalid_scope: "invalidScopeCount", "Invalid scope count. Options template have scope counts > 0.", "ops", Error;
    }
}

crate::counters! {
    /// Counters of packets by way of the client's own stack.
    pub(super) struct EmuUdpCounters: u64, "IPFIX emu-udp exporter" {
        writes: "apiWrites", "Num of API calls to write", "ops", Info;
        writes_failed: "apiWritesFailed", "Num of failed API calls to write", "ops", Info;
        tx_bytes: "txBytes", "Num of bytes transmitted", "bytes", Info;
        tx_templates: "txTempRecords", "Num of template records transmitted", "records", Info;
        tx_records: "txDataRecords", "Num of data records transmitted", "records", Info;
    }
}

crate::counters! {
    /// Counters of packets by a socket of the server.
    pub(super) struct UdpCounters: u64, "IPFIX udp exporter" {
        writes: "apiWrites", "Num of API calls to write", "ops", Info;
        writes_failed: "apiWritesFailed", "Num of failed API calls to write", "ops", Info;
        tx_writes: "txWrites", "Num of socket writes", "ops", Info;
        tx_writes_failed: "txWritesFailed", "Num of failed socket writes", "ops", Info;
        tx_bytes: "txBytes", "Num of bytes transmitted", "bytes", Info;
        tx_packets: "txPackets", "Num of packets transmitted", "records", Info;
        tx_templates: "txTempRecords", "Num of template records transmitted", "records", Info;
        tx_records: "txDataRecords", "Num of data records transmitted", "bytes", Info;
        low_watermark: "writeChanEvLowWatermark", "Num of write channel low watermark events", "ops", Info;
        high_watermark: "writeChanEvHighWatermark", "Num of write channel high watermark events", "ops", Info;
        waiting: "writeChanLen", "Write channel current length", "ops", Info;
        waiting_peak: "writeChanPeakLen", "Write channel peak length", "ops", Info;
    }
}

crate::counters! {
    /// Counters of files.
    pub(super) struct FileCounters: u64, "IPFIX file exporter" {
        writes: "apiWrites", "Num of API calls to write", "ops", Info;
        writes_failed: "apiWritesFailed", "Num of failed API calls to write", "ops", Info;
        api_rotates: "apiRotates", "Num of API calls to rotate", "ops", Info;
        api_rotates_failed: "apiRotatesFailed", "Num of failed API calls to rotate", "ops", Info;
        tx_writes: "txWrites", "Num of files writes", "ops", Info;
        tx_writes_failed: "txWritesFailed", "Num of failed files writes failed", "ops", Info;
        tx_bytes: "txBytes", "Num of bytes transmitted", "bytes", Info;
        tx_templates: "txTempRecords", "Num of template records transmitted", "records", Info;
        tx_records: "txDataRecords", "Num of data records transmitted", "records", Info;
        write_commands: "cmdWrite", "Num of command channel write events", "ops", Info;
        rotate_commands: "cmdRotate", "Num of command channel rotate events", "ops", Info;
        low_watermark: "cmdChanEvLowWatermark", "Num of command chan low watermark events", "ops", Info;
        high_watermark: "cmdChanEvHighWatermark", "Num of command chan high watermark events", "ops", Info;
        waiting: "cmdChanLen", "Command channel current length", "ops", Info;
        waiting_peak: "cmdChanPeakLen", "Command channel peak length", "ops", Info;
        rotates: "fileRotates", "Num of file rotates", "ops", Info;
        rotates_failed: "fileRotatesFailed", "Num of failed file rotates", "ops", Info;
        interval_over: "maxIntervalTimerExpired", "Num of max interval timer expired", "ops", Info;
        files_over: "maxFilesExceeded", "Num of max files exceeded", "ops", Info;
        size_over: "maxSizeExceeded", "Num of max size exceeded", "ops", Info;
        files_created: "evFileCreated", "Num of file created event notifications", "ops", Info;
        files_removed: "evFileRemoved", "Num of file removed event notifications", "ops", Info;
    }
}

crate::counters! {
    /// Counters of files that are posted.
    pub(super) struct HttpCounters: u64, "IPFIX http exporter" {
        writes: "apiWrites", "Num of API calls to write", "ops", Info;
        writes_failed: "apiWritesFailed", "Num of failed API calls to write", "ops", Info;
        tx_templates: "txTempRecords", "Total num of template records transmitted", "records", Info;
        tx_records: "txDataRecords", "Total num of data records transmitted", "records", Info;
        exports: "filesExport", "Num of files export", "ops", Info;
        exports_failed: "filesExportFailed", "Num of failed files export", "ops", Info;
        exports_failed_retry: "filesExportFailedRetry", "Num of failed files export - need to retry", "ops", Info;
        retries: "filesExportRetry", "Num of file send retries", "ops", Info;
        empty: "filesExportEmpty", "Num of empty export files", "ops", Info;
        request_failed: "failedToCreateRequest", "Num of failures to create http request", "ops", Info;
        send_failed: "failedToSendRequest", "Num of failures to send http request", "ops", Info;
        status_2xx: "httpStatus2xx", "Num of HTTP 2xx status code responses", "ops", Info;
        status_3xx: "httpStatus3xx", "Num of HTTP 3xx status code responses", "ops", Info;
        status_4xx: "httpStatus4xx", "Num of HTTP 4xx status code responses", "ops", Info;
        status_5xx: "httpStatus5xx", "Num of HTTP 5xx status code responses", "ops", Info;
        uploaded_bytes: "bytesUploaded", "Total num of bytes uploaded successfully", "bytes", Info;
        uploaded_templates: "tempRecordsUploaded", "Total num of template records uploaded successfully", "records", Info;
        uploaded_records: "dataRecordsUploaded", "Total num of data records uploaded successfully", "records", Info;
        posts_max: "maxPosts", "Max num of HTTP posts (0 - no limit)", "ops", Info;
        posts_left_out: "maxPostsExceeded", "Num of max posts exceeded", "ops", Info;
    }
}
